// CSV of answers: which columns and rows the lists of fields make.
#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "present/output/csv_text.hpp"
#include "present/output/field_csv.hpp"
#include "present/output/show.hpp"
#include "tests/files/temporary_folder.hpp"
#include "tests/present/output/listed_structs.hpp"
#include "tests/support/catch.hpp"

namespace dculab::present::test {

// Of a machine.
struct MachineSteps {
  std::string machine;
  std::vector<Step> steps;
};
struct AllSteps {
  std::string question;
  std::vector<Part<MachineSteps>> machines;
  std::optional<std::vector<Level>> levels{};
};
// By name, and rows of a list that there is not.
struct NamedSteps {
  std::vector<std::pair<std::string, MachineSteps>> by_machine;
};
struct Misled {
  std::vector<Step> steps;
};

}  // namespace dculab::present::test

namespace dculab {

template <>
struct FieldList<present::test::MachineSteps> {
  using Steps = present::test::MachineSteps;
  static constexpr std::string_view id = "machine_steps", doc = "Steps of a machine.";
  static constexpr auto fields =
      std::tuple(field("machine", "its name", &Steps::machine), field("steps", "in order", &Steps::steps));
};

template <>
struct FieldList<present::test::AllSteps> {
  using Steps = present::test::AllSteps;
  static constexpr std::string_view id = "all_steps", doc = "Steps of machines.";
  static constexpr std::string_view csv_rows = "levels|machines[machine].steps";
  static constexpr auto fields =
      std::tuple(field("question", "asked", &Steps::question), field("machines", "in order", &Steps::machines),
                 field("levels", "in their place", &Steps::levels));
};

template <>
struct FieldList<present::test::NamedSteps> {
  static constexpr std::string_view id = "named_steps", doc = "Steps by machine.", csv_rows = "by_machine.steps";
  static constexpr auto fields = std::tuple(field("by_machine", "by name", &present::test::NamedSteps::by_machine));
};

template <>
struct FieldList<present::test::Misled> {
  static constexpr std::string_view id = "misled", doc = "Steps.", csv_rows = "step";
  static constexpr auto fields = std::tuple(field("steps", "in order", &present::test::Misled::steps));
};

}  // namespace dculab

namespace dculab::present::test {
namespace {

[[nodiscard]] AllSteps steps_of_two_machines() {
  Step drafted;
  drafted.limit = "memory, most";
  drafted.worst = 1.0 / 3;
  drafted.drafts = Drafts{3};
  drafted.hits = {{"L1", 0.5}, {"L2", 0.25}};
  drafted.metrics = {{"tokens", 7}};
  return {"How long?", {MachineSteps{"z100", {Step{}}}, MachineSteps{"a \"CPU\"", {drafted, Step{}}}}};
}

[[nodiscard]] std::vector<std::string> headers(const CsvTable& table) {
  std::vector<std::string> headers;
  for (const CsvTable::Column& column : table.columns) headers.push_back(column.header);
  return headers;
}

[[nodiscard]] std::vector<std::string> column(const CsvTable& table, const std::string& header) {
  const auto found = std::ranges::find(table.columns, header, &CsvTable::Column::header);
  REQUIRE(found != table.columns.end());
  return found->cells;
}

using Texts = std::vector<std::string>;

TEST_CASE("CSV has the rows of all machines, and a column for each key") {
  const CsvTable table = csv_of(report_of("dculab/test/1", steps_of_two_machines()));
  CHECK(table.rows == 3);
  CHECK(headers(table) == Texts{"machine", "seconds", "host", "phase", "limit", "worst", "interval.low",
                                "interval.high", "hits.L2", "hits.L1", "choices.model.z", "choices.batch", "fits",
                                "drafts", "tokens"});
  CHECK(column(table, "machine") == Texts{"z100", "a \"CPU\"", "a \"CPU\""});
  CHECK(column(table, "interval.low") == Texts{"0.125", "0.125", "0.125"});
  CHECK(column(table, "interval.high") == Texts{"0.5", "0.5", "0.5"});
  CHECK(column(table, "fits") == Texts{"true;false", "true;false", "true;false"});
}

TEST_CASE("cells have every digit, and are empty where a value is absent or null") {
  const CsvTable table = csv_of(report_of("dculab/test/1", steps_of_two_machines()));
  CHECK(column(table, "limit") == Texts{"", "memory, most", ""});
  CHECK(column(table, "hits.L1") == Texts{"", "0.5", ""});
  CHECK(column(table, "drafts") == Texts{"", "3", ""});
  const Texts worst = column(table, "worst");
  CHECK(worst[0].empty());
  CHECK(std::stod(worst[1]) == 1.0 / 3);
}

TEST_CASE("headers do not depend on what rows have") {
  AllSteps none = steps_of_two_machines();
  none.machines.clear();
  const CsvTable table = csv_of(report_of("dculab/test/1", none));
  CHECK(table.rows == 0);
  CHECK(std::ranges::count(headers(table), "limit") == 1);
  CHECK(csv_text(table).starts_with("machine,seconds,host,phase,limit,worst,interval.low,"));
}

TEST_CASE("of several ways to rows the first is taken that the answer has") {
  AllSteps steps = steps_of_two_machines();
  steps.levels = std::vector<Level>{{"L1", Bytes(64)}};
  CHECK(csv_text(csv_of(report_of("dculab/test/1", steps))) == "level,bytes\nL1,64.0\n");
}

TEST_CASE("a key that is data and on the way to the rows is a column") {
  const NamedSteps named{{{"mine", {"z100", {Step{}, Step{}}}}, {"yours", {"z100", {Step{}}}}}};
  const CsvTable table = csv_of(report_of("dculab/test/1", named));
  CHECK(headers(table).front() == "by_machine");
  CHECK(column(table, "by_machine") == Texts{"mine", "mine", "yours"});
}

TEST_CASE("an answer without a list is one row") {
  CHECK(csv_text(csv_of(report_of("dculab/test/1", OtherAnswer{}))) == "steps\n2\n");
}

TEST_CASE("rows of several answers are told apart by their question") {
  Report report{"dculab/test/1", {}, {}, Json{{"studies", Json::array()}}};
  const AllSteps steps = steps_of_two_machines();
  report.json["studies"].push_back(json_of(steps));
  report.json["studies"].push_back(json_of(OtherAnswer{}));
  report.answers = {csv_answer<AllSteps>(), csv_answer<OtherAnswer>()};
  report.answers[0].place = "/studies/0";
  report.answers[1].place = "/studies/1";
  const CsvTable table = csv_of(report);
  CHECK(table.rows == 4);
  CHECK(column(table, "question") == Texts{"How long?", "How long?", "How long?", ""});
  CHECK(column(table, "steps") == Texts{"", "", "", "2"});
  CHECK(column(table, "phase") == Texts{"decode", "decode", "decode", ""});
}

TEST_CASE("a way to rows that there are not is refused") { CHECK_THROWS_AS(csv_answer<Misled>(), std::logic_error); }

TEST_CASE("cells are quoted where they must be, and no number is an empty cell") {
  Report report = report_of("dculab/test/1", steps_of_two_machines());
  report.json["machines"][0]["steps"][0]["seconds"] = std::nan("");
  report.json["machines"][0]["machine"] = "two\r\nlines";
  const files::test::TemporaryFolder folder;
  show(report, {.format = Format::csv, .file = folder.path("rows.csv"), .report_file = ""});
  const std::string text = folder.read("rows.csv");
  CHECK_THAT(text, ContainsSubstring("\n\"two\r\nlines\",,0.25,decode,"));
  CHECK_THAT(text, ContainsSubstring("\n\"a \"\"CPU\"\"\",0.5,0.25,decode,\"memory, most\","));
}

}  // namespace
}  // namespace dculab::present::test
