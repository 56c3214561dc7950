// Traces of a machine that does not exist: which of their steps are believed, and what is fitted to those.
#include "study/calibrate/trace_calibration.hpp"

#include <algorithm>

#include "config/trace_file.hpp"
#include "core/error.hpp"
#include "tests/files/temporary_folder.hpp"
#include "tests/sim/machines.hpp"
#include "tests/sim/synthetic_traces.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

using sim::test::make_step;

// Steps as the machine is predicted to take them, times `factor`.
std::vector<TraceStep> timed(const sim::Machine& machine, int count, double factor) {
  std::vector<TraceStep> steps;
  for (int index = 0; index < count; ++index)
    steps.push_back(make_step(sim::test::llama_2_7b(), index % 4 == 0 ? Phase::prefill : Phase::decode,
                              index % 4 == 0 ? 1 : index + 1, 200 * (index + 1)));
  steps = sim::test::time_steps(machine, std::move(steps), 0, 1);
  for (TraceStep& step : steps) {
    step.duration *= factor;
    for (Seconds& op : step.op_durations) op *= factor;
  }
  return steps;
}

std::string written(const files::test::TemporaryFolder& folder, const std::string& name, Trace trace) {
  trace.header.machine = "mi50-like";
  return folder.write(name, config::trace_json_lines(trace));
}

TEST_CASE("steps of all traces are believed but those that are faster than the machine can be") {
  const files::test::TemporaryFolder folder;
  const sim::Machine machine = sim::test::mi50_like();
  Trace first, second;
  first.steps = timed(machine, 4, 1);
  second.steps = timed(machine, 3, 1);
  second.steps[1].duration = Seconds(1e-6);
  const BelievedSteps believed =
      believed_steps({written(folder, "a.jsonl", first), written(folder, "b.jsonl", second)}, machine);
  REQUIRE(believed.steps.size() == 6);
  CHECK(believed.steps[3].id == first.steps[3].id);
  CHECK(believed.steps[4].id == second.steps[0].id);
  CHECK(believed.steps[5].id == second.steps[2].id);
  REQUIRE(believed.refused.size() == 1);
  CHECK(believed.refused.front().line == 2);
  CHECK(believed.refused.front().id == second.steps[1].id);
}

TEST_CASE("a trace that was taken with other threads than the machine has is refused") {
  const files::test::TemporaryFolder folder;
  sim::Machine machine = sim::test::mi50_like();
  Trace trace;
  trace.header.threads = 3;
  trace.steps = timed(machine, 2, 1);
  const std::string file = written(folder, "t.jsonl", trace);
  CHECK(believed_steps({file}, machine).steps.size() == 2);  // on a GPU they say nothing
  machine.kind = lower::DeviceKind::cpu;
  machine.compute_units = 8;
  CHECK_THROWS_WITH(believed_steps({file}, machine), ContainsSubstring("was taken with 3 threads") &&
                                                         ContainsSubstring("describes 8; probe with --threads 3"));
}

TEST_CASE("a fit follows what was measured, and cites how many steps those were") {
  const sim::Machine base = sim::test::mi50_like();
  const std::vector<TraceStep> steps = timed(base, 12, 1.2);
  const TraceCalibration all = calibrate_on(steps, base, {}, [](double) {});
  CHECK_FALSE(all.held_out.has_value());
  CHECK(all.fit.error.count == 12);
  CHECK(all.fit.error.median_abs_error < 0.12);  // before the fit 1 - 1 / 1.2
  CHECK(all.interval_factor() >= 1);
  const auto cites_steps = [](const auto& source) {
    return source.second.find("12 measured steps") != std::string::npos;
  };
  CHECK(std::ranges::any_of(all.fit.machine.sources, cites_steps));

  double last = -1;
  const TraceCalibration scored = calibrate_on(steps, base, {.share = 0.25, .seed = 2}, [&last](double share) {
    CHECK(share >= last);
    last = share;
  });
  REQUIRE(scored.held_out);
  CHECK(scored.held_out->held_out.size() == 3);
  CHECK(scored.held_out->fitted.size() == 9);
  CHECK(scored.fit.error.count == 9);
  CHECK(last > 0);
}

TEST_CASE("fewer steps than a fit needs are refused with what to do") {
  const sim::Machine base = sim::test::mi50_like();
  BelievedSteps believed;
  believed.steps.resize(8);
  CHECK_NOTHROW(check_enough(believed, base));
  believed.steps.resize(7);
  const std::string few = "only 7 steps of these traces can be used, 8 are needed; ";
  CHECK_THROWS_WITH(check_enough(believed, base), few + "run a larger grid with `dculab bench --trace`");
  believed.refused.resize(3);
  CHECK_THROWS_WITH(check_enough(believed, base),
                    few + "3 are faster than mi50-like can be: give --machine the device that they were recorded on");
  believed.advice = "they were recorded elsewhere";
  CHECK_THROWS_WITH(check_enough(believed, base), few + "they were recorded elsewhere");
}

TEST_CASE("a parameter is identified where half of its prior's variance is gone") {
  CHECK(is_identified({.key = "k", .prior = 1, .value = 1, .log_sigma = 0.34, .prior_log_sigma = 0.5}));
  CHECK_FALSE(is_identified({.key = "k", .prior = 1, .value = 1, .log_sigma = 0.36, .prior_log_sigma = 0.5}));
}

TEST_CASE("a parameter is implausible three standard deviations from its prior") {
  CHECK_FALSE(is_implausible({.key = "k", .prior = 0.8, .value = 0.4, .log_sigma = 0.1, .prior_log_sigma = 0.3}));
  CHECK(is_implausible({.key = "k", .prior = 0.8, .value = 0.037, .log_sigma = 0.1, .prior_log_sigma = 0.3}));
}

}  // namespace
}  // namespace dculab::study
