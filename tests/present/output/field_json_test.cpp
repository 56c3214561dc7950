// JSON as the lists of fields say.
#include "present/output/field_json.hpp"

#include <string>
#include <variant>

#include "tests/present/output/listed_structs.hpp"
#include "tests/support/catch.hpp"

namespace dculab::present::test {
namespace {

TEST_CASE("keys stand in the order of the list, with what is not there left out or null") {
  CHECK(json_of(Step{}).dump() ==
        R"({"seconds":0.5,"host":0.25,"phase":"decode","worst":null,"interval":[0.125,0.5],)"
        R"("levels":[{"level":"L2","bytes":4096.0}],"hits":{"L2":0.25},"choices":{"model.z":"8","batch":"2"},)"
        R"("fits":[true,false]})");
}

TEST_CASE("what is there is written in its place") {
  Step step;
  step.limit = "memory";
  step.worst = 2;
  step.drafts = Drafts{3};
  step.metrics = {{"tokens", 7}};
  const Json json = json_of(step);
  CHECK(json["limit"] == "memory");
  CHECK(json["worst"] == 2.0);
  CHECK(json["drafts"] == 3);
  CHECK(json["tokens"] == 7.0);
  CHECK(json.dump().ends_with(R"("fits":[true,false],"drafts":3,"tokens":7.0})"));
}

TEST_CASE("an empty list is an array, an empty list of pairs an object") {
  Step step;
  step.levels.clear();
  step.choices.clear();
  CHECK(json_of(step)["levels"].dump() == "[]");
  CHECK(json_of(step)["choices"].dump() == "{}");
}

TEST_CASE("a part is what its struct was, and a variant what it holds") {
  CHECK(json_of(Answer{})["step"] == json_of(Step{}));
  CHECK(json_of(std::variant<Answer, OtherAnswer>(OtherAnswer{})).dump() == R"({"steps":2})");
}

}  // namespace
}  // namespace dculab::present::test
