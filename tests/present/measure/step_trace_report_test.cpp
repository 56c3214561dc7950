// The steps of a grid as a table and as JSON.
#include "present/measure/step_trace_report.hpp"

#include <algorithm>

#include "model/folder/model_config.hpp"
#include "study/scenario/locate.hpp"
#include "tests/present/document_errors.hpp"
#include "tests/support/catch.hpp"

namespace dculab::present {
namespace {

TraceStep traced_step(Phase phase, int batch, int context, double seconds) {
  TraceStep step;
  step.id = phase == Phase::decode ? "d" : "p";
  step.model = read_model_shape(study::find_model("dculab-tiny"));
  step.batch = uniform_batch(phase, batch, context);
  step.duration = Seconds(seconds);
  step.spread = Seconds(seconds / 10);
  return step;
}

Trace two_steps() {
  Trace trace;
  trace.header.device = "a CPU";
  trace.header.build = "a build";
  trace.header.timing = "medians";
  trace.steps = {traced_step(Phase::decode, 2, 64, 0.5), traced_step(Phase::prefill, 1, 100, 0.25)};
  return trace;
}

TEST_CASE("a step has a row and a point, with the tokens that it computes a second") {
  const Report report = step_trace_report(two_steps());
  CHECK(test::document_errors(report) == std::vector<std::string>{});
  CHECK(report.schema == "dculab/bench/1");
  CHECK(report.heading == std::vector<std::string>{"a CPU, a build", "medians"});
  const Table& table = report.tables.at(0);
  REQUIRE(table.rows.size() == 2);
  CHECK(table.columns.back() == "tokens/s");
  for (const auto& row : table.rows) CHECK(row.size() == table.columns.size());
  CHECK(table.rows[0].front() == "decode");
  CHECK(table.rows[0].back() == "4.00");
  CHECK(table.rows[1].back() == "400");
  CHECK(report.json["points"][0]["decode_tokens_per_second"] == 4);
  CHECK(report.json["points"][1]["prefill_tokens_per_second"] == 400);
  CHECK(report.json["points"][1]["context_tokens"] == 100);
  CHECK_FALSE(report.json["points"][0].contains("kv_retention"));
}

TEST_CASE("what the KV cache keeps has a column where a step of the grid drops tokens") {
  Trace trace = two_steps();
  trace.steps[1].options.kv_retention = {.policy = RetentionPolicy::window, .window_tokens = 32};
  const Report report = step_trace_report(trace);
  CHECK(report.tables.at(0).columns.back() == "KV kept");
  CHECK(report.tables.at(0).rows[0].back() == "all");
  CHECK(report.tables.at(0).rows[1].back() == "window 32");
  const Json& kept = report.json["points"][1]["kv_retention"];
  CHECK(kept["policy"] == "window");
  CHECK(kept["window_tokens"] == 32);
  CHECK(kept["sink_tokens"].is_null());
}

}  // namespace
}  // namespace dculab::present
