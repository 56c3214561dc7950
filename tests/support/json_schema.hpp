// Whether a JSON document is as its schema says, for the keywords that present/schema/json_schema.hpp writes. A keyword
// that is none of them is an error too: it would be a rule that is not checked.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace dculab::test {

// "/recommendations/0/limit: is no integer"; empty when the document is valid.
[[nodiscard]] std::vector<std::string> schema_errors(const nlohmann::json& schema, const nlohmann::json& document);

}  // namespace dculab::test
