// Schemas as the lists of fields say: they take what json_of() makes, and nothing else.
#include "present/schema/json_schema.hpp"

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "tests/present/output/listed_structs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/json_schema.hpp"

namespace dculab::present::test {

// Named as Step is.
struct Impostor {
  int steps = 0;
};
struct Both {
  Step step;
  Impostor impostor;
};

}  // namespace dculab::present::test

namespace dculab {

template <>
struct FieldList<present::test::Impostor> {
  static constexpr std::string_view id = "step", doc = "Another step.";
  static constexpr auto fields = std::tuple(field("steps", "steps", unit::count, &present::test::Impostor::steps));
};

template <>
struct FieldList<present::test::Both> {
  static constexpr std::string_view id = "both", doc = "Two of a name.";
  static constexpr auto fields = std::tuple(field("step", "one", &present::test::Both::step),
                                            field("impostor", "the other", &present::test::Both::impostor));
};

}  // namespace dculab

namespace dculab::present::test {
namespace {

using Plain = nlohmann::json;
using dculab::test::schema_errors;

template <class T>
[[nodiscard]] Plain schema_of() {
  return Plain::parse(document_schema<T>("dculab/test/1").dump());
}

template <class T>
[[nodiscard]] Plain document_of(const T& answer) {
  Plain document = Plain::parse(json_of(answer).dump());
  document["schema"] = "dculab/test/1";
  return document;
}

[[nodiscard]] Step full_step() {
  Step step;
  step.limit = "memory";
  step.worst = 2;
  step.drafts = Drafts{3};
  step.metrics = {{"step_time", 0.5}, {"tokens", 7}};
  return step;
}

[[nodiscard]] std::vector<std::string> errors_of(const Plain& document) {
  return schema_errors(schema_of<Answer>(), document);
}

TEST_CASE("a schema takes the documents of its answer") {
  CHECK(errors_of(document_of(Answer{})).empty());
  CHECK(errors_of(document_of(Answer{full_step()})).empty());
}

TEST_CASE("a schema says what each number is") {
  const Plain step = schema_of<Answer>()["$defs"]["step"]["properties"];
  CHECK(step["seconds"] == Plain{{"description", "all of it"}, {"type", "number"}, {"unit", "s"}});
  CHECK(step["host"]["unit"] == "share");
  CHECK(step["interval"]["items"]["unit"] == "s");
  CHECK(step["worst"]["type"] == Plain{"number", "null"});
  CHECK(step["phase"]["enum"] == Plain{"prefill", "decode"});
  CHECK(step["levels"]["items"]["$ref"] == "#/$defs/level");
  CHECK(step["step_time"] == Plain{{"description", "of the step"}, {"type", "number"}, {"unit", "s"}});
}

TEST_CASE("what may be left out is not required, all else is") {
  const Plain required = schema_of<Answer>()["$defs"]["step"]["required"];
  CHECK(required == Plain{"seconds", "host", "phase", "worst", "interval", "levels", "hits", "choices", "fits"});
}

TEST_CASE("a wrong document is refused, with the place") {
  Plain document = document_of(Answer{full_step()});
  SECTION("another document") {
    document["schema"] = "dculab/test/2";
    CHECK(errors_of(document) == std::vector<std::string>{"/schema: is not \"dculab/test/1\""});
  }
  SECTION("a key that there is not") {
    document["step"]["levels"][0]["ways"] = 16;
    CHECK(errors_of(document) ==
          std::vector<std::string>{"/step/levels/0/ways: is a key that the schema does not have"});
  }
  SECTION("a key that is missing") {
    document["step"].erase("host");
    CHECK(errors_of(document) == std::vector<std::string>{"/step: has no \"host\""});
  }
  SECTION("a text for a number") {
    document["step"]["hits"]["L2"] = "many";
    CHECK(errors_of(document) == std::vector<std::string>{"/step/hits/L2: \"many\" is no \"number\""});
  }
  SECTION("a word that there is not") {
    document["step"]["phase"] = "training";
    CHECK(errors_of(document) ==
          std::vector<std::string>{"/step/phase: \"training\" is none of [\"prefill\",\"decode\"]"});
  }
  SECTION("an interval with one end") {
    document["step"]["interval"] = Plain::array({0.5});
    CHECK(errors_of(document) == std::vector<std::string>{"/step/interval: has 1 items, minItems is 2"});
  }
}

TEST_CASE("of several answers a document is one") {
  using Either = std::variant<Answer, OtherAnswer>;
  const Plain schema = schema_of<Either>();
  CHECK(schema_errors(schema, document_of(Answer{})).empty());
  CHECK(schema_errors(schema, document_of(OtherAnswer{})).empty());
  Plain neither = document_of(OtherAnswer{});
  neither["steps"] = 1.5;
  CHECK(schema_errors(schema, neither) == std::vector<std::string>{"/steps: 1.5 is no \"integer\""});
}

TEST_CASE("two structs with one name have no schema") {
  CHECK_THROWS_AS(document_schema<Both>("dculab/test/1"), std::logic_error);
}

}  // namespace
}  // namespace dculab::present::test
