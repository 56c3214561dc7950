// `dculab schema`: what the JSON of every command has. That their documents are so, run_for_json() holds everywhere.
#include <string>
#include <vector>

#include "tests/cli/program.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/json_schema.hpp"

namespace dculab::cli::test {
namespace {

using dculab::test::schema_errors;

const Arguments kDecodePrediction{"predict", "--model", "llama-2-7b", "--machine", "z100", "--phase",
                                  "decode",  "--batch", "4",          "--context", "512"};

TEST_CASE("every document has a schema that names it", "[main]") {
  const Json schemas = run_for_json({"schema"}).at("schemas");
  REQUIRE(schemas.size() > 20);
  for (const Json& each : schemas) {
    INFO(each);
    const Json schema = schema_of(each.at("name"));
    CHECK(schema.at("$schema") == "https://json-schema.org/draft/2020-12/schema");
    CHECK(schema.at("title") == each.at("schema"));
    CHECK(schema == schema_of(each.at("schema")));
  }
}

TEST_CASE("a schema says what a number is, and what a word may be") {
  const Json schema = schema_of("predict");
  const Json& step = schema.at("properties").at("step_seconds");
  CHECK(step.at("type") == "number");
  CHECK(step.at("unit") == "s");
  CHECK_FALSE(step.at("description").get<std::string>().empty());
  CHECK(schema.at("properties").at("basis").at("enum") ==
        Json::array({"measured", "interpolated", "extrapolated", "priors"}));
  CHECK(schema.at("$defs").at("op").at("properties").at("flops").at("unit") == "FLOP");
}

TEST_CASE("a document that is otherwise is refused") {
  const Json schema = schema_of("predict");
  Json document = run_for_json(kDecodePrediction);
  SECTION("a key that the schema does not have") {
    document["ops"][0]["colour"] = "red";
    CHECK(schema_errors(schema, document) ==
          std::vector<std::string>{"/ops/0/colour: is a key that the schema does not have"});
  }
  SECTION("a key that is missing") {
    document.erase("step_seconds");
    CHECK(schema_errors(schema, document) == std::vector<std::string>{"/: has no \"step_seconds\""});
  }
  SECTION("a text in the place of a number") {
    document["interval_seconds"][1] = "long";
    CHECK(schema_errors(schema, document) ==
          std::vector<std::string>{"/interval_seconds/1: \"long\" is no \"number\""});
  }
  SECTION("another document") {
    document["schema"] = "dculab/recommend/1";
    CHECK_FALSE(schema_errors(schema, document).empty());
  }
}

TEST_CASE("a schema is written to a file, and one that there is not is refused") {
  const Folder folder;
  const std::string file = folder.path("schema.json");
  CHECK(run_dculab({"schema", "study", "--output", file}).exit_code == 0);
  CHECK(Json::parse(read(file)) == schema_of("study"));
  check_refused({"schema", "nothing"}, {"'nothing'", "recommend"});
}

}  // namespace
}  // namespace dculab::cli::test
