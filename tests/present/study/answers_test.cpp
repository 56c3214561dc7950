// What `study`, `predict`, `simulate` and `recommend` answer, in all its forms: tables, JSON that is as its schema
// says, and CSV with the same rows.
#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "config/scenario_document.hpp"
#include "present/output/csv_text.hpp"
#include "present/output/show.hpp"
#include "present/output/table_text.hpp"
#include "present/study/prediction_report.hpp"
#include "present/study/recommend_report.hpp"
#include "present/study/search_report.hpp"
#include "present/study/simulated_scenario.hpp"
#include "present/study/study_report.hpp"
#include "study/answer/study_question.hpp"
#include "study/search/search.hpp"
#include "study/search/search_answer.hpp"
#include "tests/present/document_errors.hpp"
#include "tests/support/catch.hpp"

namespace dculab::present {
namespace {

const std::string kStep = "model: llama-2-7b\nworkload: {phase: decode, batch: 16, context_tokens: 2000}\n";
const std::string kRequests = "model: llama-2-7b\nworkload: {requests: 12, prompt_tokens: 200, output_tokens: 40}\n";

[[nodiscard]] config::Scenario scenario_of(const std::string& yaml) {
  const std::string text = "schema: dculab/scenario/1\nquestion: Which one?\n" + yaml;
  return config::read_scenario("s.yaml", config::parse_value("s.yaml", text));
}

// Of a scenario that another one is followed by.
[[nodiscard]] config::Scenario following() {
  config::Scenario scenario = scenario_of(kStep + "machine: z100\n");
  scenario.question = "And then?";
  return scenario;
}

[[nodiscard]] Report studied(const std::string& yaml, double within = 0) {
  const config::Scenario scenario = scenario_of(yaml);
  Report report = study_report(scenario);
  add_study_answer(scenario, study::answer_study(scenario, scenario.machines, within), report);
  return report;
}

[[nodiscard]] std::vector<std::string> column(const CsvTable& table, const std::string& header) {
  const auto found = std::ranges::find(table.columns, header, &CsvTable::Column::header);
  return found == table.columns.end() ? std::vector<std::string>{} : found->cells;
}

// The rows of CSV, of a report whose tables and JSON are whole.
[[nodiscard]] CsvTable rows_of(const Report& report) {
  CHECK(test::document_errors(report) == std::vector<std::string>{});
  REQUIRE_FALSE(report.tables.empty());
  for (const Table& table : report.tables) {
    CHECK_FALSE(table.rows.empty());
    for (const Row& row : table.rows) CHECK(row.size() <= table.columns.size());
    CHECK(table_text(table, std::nullopt).find(table.columns.back()) != std::string::npos);
    CHECK_FALSE(table_text(table, 60).empty());
  }
  const CsvTable csv = csv_of(report);
  std::set<std::string> headers;
  for (const CsvTable::Column& each : csv.columns) {
    CHECK(headers.insert(each.header).second);
    CHECK(each.cells.size() == csv.rows);
  }
  return csv;
}

TEST_CASE("a prediction has a row for each op, with the bytes of each memory level") {
  const study::Prediction prediction = study::predict(scenario_of(kStep + "machine: z100\n"));
  const Report report = prediction_report(prediction);
  const CsvTable csv = rows_of(report);
  CHECK(csv.rows == prediction.plan.ops.size());
  CHECK(report.tables.at(0).rows.size() == csv.rows);
  double seconds = 0;
  for (const std::string& each : column(csv, "seconds")) seconds += std::stod(each);
  CHECK(seconds <= report.json["step_seconds"].get<double>());
  CHECK(seconds + report.json["host_seconds"].get<double>() == Approx(report.json["step_seconds"].get<double>()));
  CHECK(column(csv, "bytes.DRAM").size() == csv.rows);
}

TEST_CASE("a sweep of steps has the points of all machines") {
  const Report report = studied(kStep +
                                "machines: [z100, k100-ai]\nsweep:\n  kv_cache.block_size: [16, 64]\n"
                                "  model.num_key_value_heads: [8, 32]\n");
  const CsvTable csv = rows_of(report);
  CHECK(csv.rows == 8);
  CHECK(std::ranges::count(column(csv, "machine"), "k100-ai") == 4);
  CHECK(std::ranges::count(column(csv, "choices.kv_cache.block_size"), "64") == 4);
  const Json& last = report.json["machines"][1]["points"][3];
  CHECK(column(csv, "step_seconds").back() == last["step_seconds"].dump());
  CHECK(column(csv, "interval_seconds.high").back() == last["interval_seconds"][1].dump());
}

TEST_CASE("sensitivity adds a table of figures, and leaves the rows") {
  const Report report = studied(kStep + "machine: z100\nsweep: {kv_cache.block_size: [1, 64]}\n", 2);
  CHECK(rows_of(report).rows == 2);
  CHECK_FALSE(report.json["machines"][0]["sensitivity"].empty());
}

TEST_CASE("designs have a row each") {
  const CsvTable csv =
      rows_of(studied(kStep + "machine: z100\nsweep:\n  machine.memory.DRAM.bandwidth: [1 TB/s, 2 TB/s]\n"
                              "  kv_cache.block_size: [16, 64]\nchoose: [kv_cache.block_size]\n"));
  CHECK(csv.rows == 2);
  CHECK(column(csv, "figures.memory.DRAM.bandwidth") == std::vector<std::string>{"1000000000000.0", "2000000000000.0"});
}

TEST_CASE("variants have a row at each point of each machine, the baseline first") {
  const std::string compare =
      kStep +
      "machines: [z100, k100-ai]\nsweep: {workload.batch: [16, 32]}\ncompare:\n  baseline: as it is\n"
      "  variants:\n    - {name: blocks of one, changes: {kv_cache.block_size: 1}}\n";
  const CsvTable csv = rows_of(studied(compare));
  CHECK(csv.rows == 8);
  CHECK(std::ranges::count(column(csv, "variant"), "blocks of one") == 4);
  CHECK(column(csv, "change.step_time").front().empty());
  CHECK(column(csv, "choices.workload.batch").back() == "32");
  const Report reported = studied(compare +
                                  "  source: somebody\n  reported:\n"
                                  "    - {variant: blocks of one, metric: step_time, change: 10 %,"
                                  " at: {workload.batch: 32}}\n");
  CHECK(rows_of(reported).rows == 8);
  CHECK(reported.json["comparisons"][1]["reported"].size() == 1);
}

TEST_CASE("numbers of KV heads have what was measured of them, under keys that do not depend on it") {
  const std::string table = DCULAB_SOURCE_DIR "/tests/data/group_accuracy.csv";
  const Report report = studied(
      "model: llama-2-7b\nmachine: k100-ai\nworkload: {requests: 100, prompt_tokens: 200, output_tokens: 100}\n"
      "sweep: {model.num_key_value_heads: [8, 32]}\naccuracy: {model: dculab-tiny, file: " +
      table + ", tolerance: 5 %, speed_tie: 5 %}\n");
  const CsvTable csv = rows_of(report);
  CHECK(csv.rows == 2);
  CHECK(report.json["accuracy_metric"] == "perplexity");
  CHECK(column(csv, "accuracy").at(0) == report.json["machines"][0]["points"][0]["accuracy"].dump());
}

TEST_CASE("drafts have a row for each point, and published ones for each variant") {
  const std::string drafts =
      "model: llama-2-7b\nmachine: h100-sxm\nstack: vllm\n"
      "workload: {phase: decode, batch: 3, context_tokens: 500}\nengine:\n"
      "  speculative_config: {method: ngram, num_speculative_tokens: 2, acceptance: 0.7}\n";
  const CsvTable swept = rows_of(studied(drafts + "sweep: {workload.batch: [1, 8]}\n"));
  CHECK(swept.rows == 2);
  CHECK(column(swept, "interval.low").size() == 2);
  const CsvTable reported = rows_of(studied(drafts + "compare:\n  baseline: none\n  source: nobody\n  variants:\n"
                                                     "    - {name: often, changes: "
                                                     "{engine.speculative_config.acceptance: 0.9}}\n"
                                                     "  reported: [{variant: often, metric: speed_up, value: 1.5}]\n"));
  CHECK(column(reported, "variant") == std::vector<std::string>{"often"});
  CHECK(column(reported, "priced.speed_up").size() == 1);
}

TEST_CASE("a search has its best points, or those of its front") {
  const auto searched = [](const std::string& more) {
    const config::Scenario scenario =
        scenario_of(kStep + "machine: z100\nsweep: {kv_cache.block_size: [1, 16, 64]}\n" + more);
    const study::SweepSpace space(scenario);
    const study::SearchSummary summary = study::search(space, {.threads = 1}, {});
    Report report = study_report(scenario);
    report_search(space, summary, study::answer_search(space, summary, {.threads = 1}, {}), report);
    return report;
  };
  const Report best = searched("objective: {minimize: step_time}\n");
  CHECK(rows_of(best).rows == best.json["best"].size());
  const Report front = searched("objective: {minimize: step_time}\npareto: {minimize: [step_time, kv_bytes]}\n");
  CHECK(rows_of(front).rows == front.json["pareto"].size());
}

TEST_CASE("simulations have a row each, with the figures by name") {
  SimulationReport simulated;
  const study::SimulationQuestion question =
      study::simulation_question(scenario_of(kRequests + "machine: z100\nsweep: {kv_cache.block_size: [16, 64]}\n"));
  simulated.add(question, study::answer_simulation(question, {.threads = 1}, study::SimulatedIntervals::none));
  const Report report = simulated.take();
  const CsvTable csv = rows_of(report);
  CHECK(csv.rows == 2);
  CHECK(column(csv, "ttft_p99").at(1) == report.json["simulations"][1]["ttft_p99"].dump());
  CHECK(column(csv, "choices.kv_cache.block_size") == std::vector<std::string>{"16", "64"});
}

TEST_CASE("a single simulation has intervals and a timeline") {
  SimulationReport simulated;
  const study::SimulationQuestion question = study::simulation_question(scenario_of(kRequests + "machine: z100\n"));
  simulated.add(question,
                study::answer_simulation(question, {.threads = 1}, study::SimulatedIntervals::of_single_point));
  const Report report = simulated.take();
  const CsvTable csv = rows_of(report);
  CHECK(csv.rows == 1);
  CHECK(column(csv, "intervals.ttft_p50.high").at(0) ==
        report.json["simulations"][0]["intervals"]["ttft_p50"][1].dump());
}

TEST_CASE("a recommendation has the candidates of each decision") {
  study::RecommendationQuestion question;
  question.scenario = scenario_of(kRequests + "machine: z100\n");
  question.count_requests = true;
  const Report report = recommendation_report(question, {study::recommend_serving(question, "z100")});
  const CsvTable csv = rows_of(report);
  std::size_t candidates = 0;
  for (const Json& decision : report.json["recommendations"][0]["decisions"])
    candidates += decision["candidates"].size();
  CHECK(csv.rows == candidates);
  CHECK(std::ranges::count(column(csv, "key"), "kv_cache.block_size") > 1);
  CHECK(column(csv, "machine").at(0) == "z100");
}

TEST_CASE("several studies, and those that follow one, are told apart by their question") {
  Report all = studies_report();
  const std::string steps = kStep + "machine: z100\nsweep: {kv_cache.block_size: [16, 64]}\n";
  Report first = studied(steps);
  add_follower(following(), {"a note"}, studied(steps), first);
  add_study(std::move(first), all);
  add_study(studied(steps), all);
  const CsvTable csv = rows_of(all);
  CHECK(csv.rows == 6);
  CHECK(column(csv, "question") ==
        std::vector<std::string>{"Which one?", "Which one?", "And then?", "And then?", "Which one?", "Which one?"});
  CHECK(all.json["studies"][0]["warnings"] == Json::array({"a note"}));
}

TEST_CASE("a conclusion says what each machine would take, and what has no room there") {
  const std::string heads = "sweep: {model.num_key_value_heads: [8, 32], kv_cache.block_size: [16]}\n";
  const std::string large = "model: llama-2-7b\nworkload: {phase: decode, batch: 24, context_tokens: 2000}\n";
  Report report = studied(large + "machines: [z100, k100-ai]\n" + heads);
  REQUIRE(report.json["conclusion"].size() == 1);
  const std::string sentence = report.json["conclusion"][0];
  CHECK(sentence.starts_with("llama-2-7b would take "));
  for (const char* const part :
       {" a step on z100 with ", " and block size 16 (no room for 32 KV heads), ", " a step on k100-ai with "})
    CHECK_THAT(sentence, ContainsSubstring(part));
  CHECK(text_of(report, Format::table, std::nullopt).ends_with("\nIn short\n" + sentence + "\n"));

  CHECK_THAT(sentence, !ContainsSubstring("Every step waits"));  // 24 sequences compute long on z100
  const Report small = studied(
      "model: llama-2-7b\nworkload: {phase: decode, batch: 4, context_tokens: 2000}\n"
      "machines: [z100, k100-ai]\nsweep: {kv_cache.block_size: [16, 64]}\n");
  CHECK_THAT(
      std::string(small.json["conclusion"][0]),
      ContainsSubstring(". Every step waits for DRAM; its bandwidth is 1.02 TB/s on z100, 896 GB/s on k100-ai."));

  Report after = studied(kStep + "machine: z100\nsweep: {kv_cache.block_size: [16, 64]}\n");
  add_follower(following(), {}, std::move(report), after);
  CHECK(after.json["conclusion"].size() == 2);
  CHECK(after.json["conclusion"][1] == sentence);
  CHECK(test::document_errors(after) == std::vector<std::string>{});
  CHECK_FALSE(after.json["then"][0].contains("conclusion"));
}

}  // namespace
}  // namespace dculab::present
