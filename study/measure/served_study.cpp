#include "study/measure/served_study.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "config/machine_file.hpp"
#include "core/error.hpp"
#include "model/plan_step.hpp"
#include "sim/calibration/floor_check.hpp"
#include "sim/calibration/hold_out.hpp"
#include "sim/cost/step_price.hpp"
#include "sim/serving/pauses.hpp"
#include "sim/serving/step_sample.hpp"
#include "study/calibrate/calibrated_machine.hpp"
#include "study/evaluate/serving_figures.hpp"
#include "study/evaluate/serving_intervals.hpp"
#include "study/measure/measured_serving.hpp"
#include "study/scenario/request_workload.hpp"
#include "study/scenario/server.hpp"
#include "study/scenario/serving_scenario.hpp"

namespace dculab::study {
namespace {

using Figures = std::map<std::string, double>;

constexpr std::size_t kKeptSteps = 2000;   // of each run
constexpr std::size_t kFittedSteps = 400;  // more hardly change the fit, and take longer

// A point of the sweep, with what its rounds gave.
struct ServedPoint {
  const config::SweepPoint* point;
  sim::SimulatedServer server;
  RequestWorkload workload;
  std::vector<std::vector<TraceStep>> other_rounds{};  // steps of the other requests
  std::vector<TraceStep> calibrating{};                // of these, those of the middle rounds
  TraceHeader header{};
  std::vector<Figures> rounds{};                 // of the own requests
  std::optional<engine::ServedWorkload> last{};  // the own requests in the last round
};

// Points whose engines have the same share of this machine, which is calibrated for them.
struct Group {
  int replicas = 1;
  sim::Machine machine;
  std::vector<ServedPoint> points{};
};

// Drawn alike, from another seed.
[[nodiscard]] RequestWorkload other_requests(config::Scenario scenario, const ModelShape& model) {
  ++scenario.workload.served.seed;
  return resolve_requests(scenario, model);
}

// Whether they arrive alike and are as long.
[[nodiscard]] bool same_requests(const RequestWorkload& one, const RequestWorkload& other) {
  RequestSource first(one), second(other);
  while (true) {
    const auto a = first.next(), b = second.next();
    if (!a || !b) return !a && !b;
    if (a->arrival != b->arrival || a->max_tokens != b->max_tokens ||
        a->prompt_token_ids.size() != b->prompt_token_ids.size())
      return false;
  }
}

[[nodiscard]] ServedPoint served_point(const config::SweepPoint& point, const sim::Machine& host) {
  sim::SimulatedServer server = resolve_server(point.scenario, host);
  make_measurable(server, point.scenario, "leave --host out, or give a file of this machine");
  RequestWorkload workload = resolve_requests(point.scenario, server.model);
  if (same_requests(workload, other_requests(point.scenario, server.model)))
    throw InputError(point.scenario.file,
                     "workload: has no other requests to calibrate on, another seed gives the same; draw arrivals or "
                     "lengths, or compare with `dculab simulate --measure`");
  return {&point, std::move(server), std::move(workload)};
}

[[nodiscard]] std::vector<Group> groups_of(const std::vector<config::SweepPoint>& sweep, const sim::Machine& host) {
  std::vector<Group> groups;
  for (const config::SweepPoint& point : sweep) {
    ServedPoint served = served_point(point, host);
    const int replicas = point.scenario.deployment.replicas();
    auto group = std::ranges::find(groups, replicas, &Group::replicas);
    if (group == groups.end()) group = groups.insert(group, {.replicas = replicas, .machine = served.server.machine});
    group->points.push_back(std::move(served));
  }
  return groups;
}

void serve_round(ServedPoint& served, const engine::BenchProgress& progress) {
  const MeasuredServer engine{.scenario = served.point->scenario,
                              .options = served.server.options,
                              .num_blocks = *served.server.num_blocks,
                              .threads = served.server.machine.compute_units,
                              .op_timing = engine::OpTiming::on,
                              .machine = &served.server.machine,
                              .most_trace_steps = kKeptSteps,
                              .replicas = replicas_here(served.point->scenario, served.server.options, "--measure"),
                              .progress = progress};
  MeasuredServing calibrating = measure(engine, other_requests(served.point->scenario, served.server.model));
  if (const std::string of = choices_text(*served.point); !of.empty())
    for (TraceStep& step : calibrating.trace.steps) step.id.insert(0, of + ", ");
  served.other_rounds.push_back(std::move(calibrating.trace.steps));
  served.header = std::move(calibrating.trace.header);
  MeasuredServing own = measure(engine, served.workload);
  served.rounds.push_back(compared_figures(own.served.metrics, own.served.num_steps));
  served.last = std::move(own.served);
}

// The round, or the two, whose steps took neither longest nor shortest together: what is compared is the median of the
// rounds, and a round that others disturbed would make the machine slower than it was then.
void calibrate_on_middle_rounds(std::vector<ServedPoint>& points) {
  std::vector<std::pair<Seconds, std::size_t>> rounds;  // time, number
  for (std::size_t round = 0; round < points.front().other_rounds.size(); ++round) {
    Seconds taken;
    for (const ServedPoint& point : points)
      for (const TraceStep& step : point.other_rounds[round]) taken += step.duration;
    rounds.emplace_back(taken, round);
  }
  std::ranges::sort(rounds);
  for (const std::size_t middle : std::set{(rounds.size() - 1) / 2, rounds.size() / 2})
    for (ServedPoint& point : points)
      std::ranges::move(point.other_rounds[rounds[middle].second], std::back_inserter(point.calibrating));
}

// Each as likely as `host` expects it to take long, so that the few prefills, which take most of the time, are among
// them; without those that cannot be true. (Not as it took long: that would prefer the
// disturbed ones.)
[[nodiscard]] std::vector<TraceStep> steps_to_fit(const std::vector<ServedPoint>& points, const sim::Machine& host) {
  std::vector<const TraceStep*> all;
  for (const ServedPoint& point : points)
    for (const TraceStep& step : point.calibrating) all.push_back(&step);
  std::vector<Seconds> expected;
  Seconds total, passed;
  for (const TraceStep* step : all) {
    expected.push_back(sim::price_step(host, plan_step(step->model, step->options, step->batch)).seconds);
    total += expected.back();
  }
  std::vector<TraceStep> drawn, steps;
  for (std::size_t index = 0; index < all.size(); ++index) {
    passed += expected[index];
    if (passed / total * kFittedSteps >= static_cast<double>(drawn.size()) + 1) drawn.push_back(*all[index]);
  }
  std::set<std::size_t> refused;
  for (const sim::FloorViolation& violation : sim::floor_violations(host, drawn)) refused.insert(violation.row);
  for (std::size_t row = 0; row < drawn.size(); ++row)
    if (!refused.contains(row)) steps.push_back(std::move(drawn[row]));
  if (steps.size() < sim::kFewestSteps)
    throw InputError("only " + std::to_string(steps.size()) + " served steps can be used, " +
                     std::to_string(sim::kFewestSteps) + " are needed to calibrate; serve more requests");
  return steps;
}

// How much longer than typical the calibrating steps took on average: of a short one, what was not pauses. A single
// long pause does not decide: a step counts as ten times its price at most.
[[nodiscard]] double interference_free(const std::vector<ServedPoint>& points, const sim::Machine& machine) {
  constexpr double kLongest = 10;
  Seconds open, pauses;
  for (const ServedPoint& point : points)
    for (const sim::PredictedMeasured& step : sim::compare_steps(machine, point.calibrating)) {
      open += sim::open_to_pauses(step.predicted);
      pauses += std::min(step.measured, kLongest * step.predicted) - step.predicted;
    }
  return 1 / (1 + std::max(0.0, pauses / open));
}

// What is compared, and how far the simulator may be off.
struct Limit {
  const char* metric;
  double most;
};
constexpr std::array<Limit, 5> kLimits{{{"output_tokens_per_second", 0.05},
                                        {"ttft_p50", 0.10},
                                        {"ttft_p99", 0.20},
                                        {"tpot_p50", 0.10},
                                        {"tpot_p99", 0.20}}};

// Metric by metric, over the rounds.
[[nodiscard]] Figures median_figures(const std::vector<Figures>& rounds) {
  Figures medians;
  for (const auto& [metric, any] : rounds.front()) {
    std::vector<double> values;
    for (const Figures& round : rounds)
      if (round.contains(metric)) values.push_back(round.at(metric));
    std::ranges::sort(values);
    medians[metric] = (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
  }
  return medians;
}

// What the simulator expects of a point, and between what.
struct Expected {
  Figures figures;
  Intervals intervals;
  HeadSetCounts head_sets{};  // where there are two
};

[[nodiscard]] Expected simulated(const ServedPoint& served, const sim::Machine& machine) {
  sim::SimulatedServer server = served.server;
  server.machine = machine;
  const ServiceLevel& slo = served.point->scenario.slo;
  sim::StepSample sample(sim::kSampledSteps);
  const sim::ServingRun run = sim::simulate(server, served.workload, slo,
                                            {.on_step = [&sample](const ServedStep& step, int) { sample.add(step); }});
  Expected expected{compared_figures(run.metrics, run.num_steps), {}, run.head_sets};
  expected.intervals = serving_intervals(server, served.workload, slo, sim::step_confidence(server, sample.batches()),
                                         expected.figures, 0);
  return expected;
}

[[nodiscard]] ComparedPointServing compared(const ServedPoint& served, const sim::Machine& machine) {
  const Expected expected = simulated(served, machine);
  const Figures measured = median_figures(served.rounds);
  ComparedPointServing found{served.point, served.server, {}, expected.head_sets, *served.last};
  for (const auto& [metric, most] : kLimits) {
    if (!measured.contains(metric) || !expected.figures.contains(metric)) continue;
    std::vector<double> rounds;
    for (const Figures& figures : served.rounds) rounds.push_back(figures.at(metric));
    const auto [lowest, highest] = std::ranges::minmax_element(rounds);
    const auto [low, high] = expected.intervals.at(metric);
    found.metrics.push_back({.metric = metric,
                             .simulated = expected.figures.at(metric),
                             .low = low,
                             .high = high,
                             .measured = measured.at(metric),
                             .lowest = *lowest,
                             .highest = *highest,
                             .limit = most});
  }
  return found;
}

}  // namespace

bool ComparedMetric::is_within() const { return std::abs(off()) <= limit; }

ServedStudy measure_served_study(const config::Scenario& scenario, const std::vector<config::SweepPoint>& sweep,
                                 const sim::Machine& host, const engine::BenchProgress& progress) {
  std::vector<Group> groups = groups_of(sweep, host);
  for (int round = 0; round < scenario.measure.repeats; ++round)
    for (Group& group : groups)
      for (ServedPoint& served : group.points) serve_round(served, progress);
  ServedStudy study;
  for (Group& group : groups) {
    calibrate_on_middle_rounds(group.points);
    std::vector<TraceStep> steps = steps_to_fit(group.points, group.machine);
    sim::Fit fit = sim::calibrate(group.machine, steps);
    fit.machine.stack.reached.interference_free = interference_free(group.points, fit.machine);
    ServedGroup& done =
        study.groups.emplace_back(ServedGroup{group.replicas, fit.machine, fit.error, steps.size(), {}});
    for (const ServedPoint& served : group.points) done.points.push_back(compared(served, done.machine));
    if (!study.trace.steps.empty()) continue;  // the first group's are what is left of the study
    study.trace = {group.points.front().header, std::move(steps)};
    study.machine = done.machine;
  }
  config::cite(study.machine, "stack.reached.undisturbed", sim::Evidence::measured,
               "dculab: how much longer than predicted the served steps took on average");
  cite_fit(study.machine, std::to_string(study.trace.steps.size()) + " served steps");
  return study;
}

}  // namespace dculab::study
