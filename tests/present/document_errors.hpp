// Whether the JSON of a report is as the schema of its command says.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "present/schema/answer_schemas.hpp"
#include "tests/support/json_schema.hpp"

namespace dculab::present::test {

// Empty where it is: each key that is always there, none that the schema does not have.
[[nodiscard]] inline std::vector<std::string> document_errors(const Report& report) {
  nlohmann::json document = nlohmann::json::parse(report.json.dump());
  document["schema"] = report.schema;
  const Json schema = find_answer_schema(report.schema).make();
  return dculab::test::schema_errors(nlohmann::json::parse(schema.dump()), document);
}

}  // namespace dculab::present::test
