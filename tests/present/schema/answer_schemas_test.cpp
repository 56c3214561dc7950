// The schemas of all answers: complete, and as the answers are that no test of the program has.
#include "present/schema/answer_schemas.hpp"

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "present/study/calibration_fields.hpp"
#include "present/study/served_fields.hpp"
#include "present/study/validation_fields.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/json_schema.hpp"

namespace dculab::present {
namespace {

using Plain = nlohmann::json;

[[nodiscard]] Plain plain(const Json& json) { return Plain::parse(json.dump()); }

// Properties without a description, wherever they stand.
void find_undescribed(const Plain& schema, const std::string& place, std::vector<std::string>& found) {
  if (schema.is_object() && schema.contains("properties") && schema.contains("type"))
    for (const auto& [key, property] : schema["properties"].items())
      if (!property.contains("const") && property.value("description", "").empty()) found.push_back(place + "/" + key);
  if (schema.is_structured())
    for (const auto& [key, inner] : schema.items()) find_undescribed(inner, place + "/" + key, found);
}

[[nodiscard]] std::vector<std::string> errors_of(std::string_view name, Json document) {
  document["schema"] = find_answer_schema(name).id;
  return dculab::test::schema_errors(plain(find_answer_schema(name).make()), plain(document));
}

// The properties of what a schema refers to, lists or says of the values of an object.
[[nodiscard]] Plain properties(const Plain& document, Plain schema) {
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (const char* inner : {"items", "additionalProperties"})
      if (schema.contains(inner) && schema[inner].is_object()) {
        schema = Plain(schema[inner]);
        goes_on = true;
      }
    if (schema.contains("$ref")) {
      schema = document.at(Plain::json_pointer(schema["$ref"].get<std::string>().substr(1)));
      goes_on = true;
    }
  }
  return schema.value("properties", Plain::object());
}

// Of `document`, at the top or an alternative: what leads nowhere of the ways to the rows of its CSV.
[[nodiscard]] std::vector<std::string> lost_rows(const Plain& document, const Plain& answer) {
  std::vector<std::string> lost;
  if (!answer.contains("csv_rows")) return lost;
  for (const auto& path : csv_paths(answer["csv_rows"].get<std::string>())) {
    Plain found = answer.value("properties", Plain::object());
    for (const CsvPathStep& step : path) {
      if (!found.contains(step.key)) lost.push_back(step.key);
      found = properties(document, found.value(step.key, Plain::object()));
      for (const std::string& key : step.repeated)
        if (!found.contains(key)) lost.push_back(step.key + "[" + key + "]");
    }
  }
  return lost;
}

TEST_CASE("every schema says which rows are CSV, and they are there") {
  std::size_t with_rows = 0;
  for (const AnswerSchema& each : answer_schemas()) {
    INFO(each.name);
    const Plain schema = plain(each.make());
    for (const Plain& answer : schema.contains("anyOf") ? schema["anyOf"] : Plain::array({schema})) {
      CHECK(lost_rows(schema, answer) == std::vector<std::string>{});
      with_rows += answer.contains("csv_rows") ? 1 : 0;
    }
  }
  CHECK(with_rows > 30);
}

TEST_CASE("names and documents are one to one, and every key says what it is") {
  std::set<std::string_view> names, ids;
  for (const AnswerSchema& each : answer_schemas()) {
    INFO(each.name);
    CHECK(names.insert(each.name).second);
    CHECK(ids.insert(each.id).second);
    CHECK(each.id.starts_with("dculab/" + std::string(each.name) + "/"));
    std::vector<std::string> undescribed;
    find_undescribed(plain(each.make()), "", undescribed);
    CHECK(undescribed == std::vector<std::string>{});
  }
  CHECK_THROWS_AS(find_answer_schema("nothing"), InputError);
}

TEST_CASE("of several documents under one name each has a title of its own") {
  for (const AnswerSchema& each : answer_schemas()) {
    INFO(each.name);
    const Plain schema = plain(each.make());
    if (!schema.contains("anyOf") || each.name == "scenario") continue;  // a file, in one form or another
    std::set<std::string> titles;
    for (const Plain& document : schema["anyOf"]) CHECK(titles.insert(document.at("title")).second);
  }
}

TEST_CASE("served runs are as their schema says") {
  study::ServedRuns runs;
  runs.rows.emplace_back();
  runs.rows.back().figure.measured = Seconds(2);
  runs.rows.back().figure.predicted_by["rival"] = Seconds(1);
  runs.rows.back().predicted = Seconds(3);
  runs.unpriced.push_back({4, "an experiment", "no such machine", ""});
  runs.scores.push_back({"dculab", config::ServedMetric::ttft_mean, {.count = 1}});
  runs.common.push_back({"rival", config::ServedMetric::ttft_mean, {.count = 1}, {.count = 1}});
  CHECK(errors_of("validate", json_of(ReportedServed{runs})).empty());
  const std::vector<study::FittedWithout> fits{{"an experiment", {.per_request = Seconds(0.01)}}};
  Json left_out = json_of(ReportedServed{runs, &fits});
  CHECK(errors_of("validate", left_out).empty());
  CHECK(left_out["rows"][0]["error"] == 0.5);
  left_out["fitted_without"][0].erase("without");
  CHECK_FALSE(errors_of("validate", left_out).empty());
}

TEST_CASE("points that were left out are as their schema says") {
  study::Scores left_out_rows;
  left_out_rows.refused.push_back({3, "too fast", "below the floor", "a100"});
  study::LeftOutPoint point;
  point.left_out = "a100";
  point.row.id = "a row";
  point.row.unit = "s";
  point.row.measured = point.row.predicted = point.row.naive = 1;
  const std::vector<study::LeftOutPoint> points{point};
  ReportedLeaveOneOut reported{left_out_rows, {}};
  reported.groups.emplace_back("source", ReportedLeftOut{study::score_left_out(points), points});
  CHECK(errors_of("validate", json_of(reported)).empty());
  reported.source_effects = std::vector<study::SourceEffect>{{"a paper", "amd", 0.1, 0.2}};
  CHECK(errors_of("validate", json_of(reported)).empty());
}

}  // namespace
}  // namespace dculab::present
