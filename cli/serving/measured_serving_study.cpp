#include "cli/serving/measured_serving_study.hpp"

#include <algorithm>
#include <set>

#include "cli/output/machine_figures.hpp"
#include "cli/output/progress.hpp"
#include "cli/serving/comparison_table.hpp"
#include "cli/serving/served_comparison.hpp"
#include "config/machine_file.hpp"
#include "core/error.hpp"
#include "model/plan_step.hpp"
#include "sim/calibration/fit.hpp"
#include "sim/calibration/floor_check.hpp"
#include "sim/calibration/hold_out.hpp"
#include "sim/cost/step_price.hpp"
#include "sim/serving/pauses.hpp"
#include "study/calibrate/calibrated_machine.hpp"
#include "study/decide/serving_figures.hpp"
#include "study/measure/measured_serving.hpp"
#include "study/scenario/request_workload.hpp"
#include "study/scenario/server.hpp"
#include "study/scenario/serving_scenario.hpp"

namespace dculab::cli {
namespace {

constexpr std::size_t kKeptSteps = 2000;   // of each run
constexpr std::size_t kFittedSteps = 400;  // more hardly change the fit, and take longer

// Points whose engines have the same share of this machine, which is calibrated for them.
struct ServedGroup {
  int replicas = 1;
  sim::Machine machine;
  std::vector<ServedPoint> points{};
};

// Drawn alike, from another seed.
[[nodiscard]] RequestWorkload other_requests(config::Scenario scenario, const ModelShape& model) {
  ++scenario.workload.served.seed;
  return study::resolve_requests(scenario, model);
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
  sim::SimulatedServer server = study::resolve_server(point.scenario, host);
  study::make_measurable(server, point.scenario, "leave --host out, or give a file of this machine");
  RequestWorkload workload = study::resolve_requests(point.scenario, server.model);
  if (same_requests(workload, other_requests(point.scenario, server.model)))
    throw InputError(point.scenario.file,
                     "workload: has no other requests to calibrate on, another seed gives the same; draw arrivals or "
                     "lengths, or compare with `dculab simulate --measure`");
  return {&point, std::move(server), std::move(workload)};
}

[[nodiscard]] std::vector<ServedGroup> groups_of(const std::vector<config::SweepPoint>& sweep,
                                                 const sim::Machine& host) {
  std::vector<ServedGroup> groups;
  for (const config::SweepPoint& point : sweep) {
    ServedPoint served = served_point(point, host);
    const int replicas = point.scenario.deployment.replicas();
    auto group = std::ranges::find(groups, replicas, &ServedGroup::replicas);
    if (group == groups.end()) group = groups.insert(group, {.replicas = replicas, .machine = served.server.machine});
    group->points.push_back(std::move(served));
  }
  return groups;
}

void serve_round(ServedPoint& served, ProgressBar& bar) {
  const study::MeasuredServer engine{
      .scenario = served.point->scenario,
      .options = served.server.options,
      .num_blocks = *served.server.num_blocks,
      .threads = served.server.machine.compute_units,
      .op_timing = engine::OpTiming::on,
      .machine = &served.server.machine,
      .most_trace_steps = kKeptSteps,
      .replicas = study::replicas_here(served.point->scenario, served.server.options, "--measure"),
      .progress = [&bar](const std::string& label, double share) { bar.update(label, share); }};
  study::MeasuredServing calibrating =
      study::measure(engine, other_requests(served.point->scenario, served.server.model));
  if (const std::string of = study::choices_text(*served.point); !of.empty())
    for (TraceStep& step : calibrating.trace.steps) step.id.insert(0, of + ", ");
  served.other_rounds.push_back(std::move(calibrating.trace.steps));
  served.header = std::move(calibrating.trace.header);
  study::MeasuredServing own = study::measure(engine, served.workload);
  served.rounds.push_back(study::compared_figures(own.served.metrics, own.served.num_steps));
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
[[nodiscard]] double undisturbed(const std::vector<ServedPoint>& points, const sim::Machine& machine) {
  constexpr double kLongest = 10;
  Seconds open, pauses;
  for (const ServedPoint& point : points)
    for (const sim::PredictedMeasured& step : sim::compare_steps(machine, point.calibrating)) {
      open += sim::open_to_pauses(step.predicted);
      pauses += std::min(step.measured, kLongest * step.predicted) - step.predicted;
    }
  return 1 / (1 + std::max(0.0, pauses / open));
}

// Fits the group's machine to its calibrating steps, and cites them.
[[nodiscard]] sim::Machine calibrate(ServedGroup& group, std::vector<TraceStep> steps, Report& report) {
  sim::Fit fit = sim::calibrate(group.machine, steps);
  fit.machine.stack.reached.undisturbed = undisturbed(group.points, fit.machine);
  const std::string of = group.replicas == 1 ? "" : std::to_string(group.replicas) + " replicas, each on its share: ";
  report.heading.push_back(of + "calibrated on " + std::to_string(steps.size()) +
                           " steps of other requests at the same rates: median |error| " +
                           percent(fit.error.median_abs_error) + ", P90 " + percent(fit.error.p90_abs_error) +
                           ", bias " + percent(fit.error.bias) + "; pauses take " +
                           percent(1 - fit.machine.stack.reached.undisturbed) + " of short steps' time");
  return std::move(fit.machine);
}

void add_replicas(const ServedGroup& group, Report& report) {
  if (group.replicas == 1) return;
  for (const ServedPoint& served : group.points) {
    report.tables.push_back(served_replica_table(*served.last));
    const std::string of = study::choices_text(*served.point);
    report.tables.back().title = "Replicas, measured in the last round" + (of.empty() ? "" : ": " + of);
  }
}

}  // namespace

MeasuredStudy measure_serving_study(const config::Scenario& scenario, const sim::Machine& host, Report& report) {
  const std::vector<config::SweepPoint> sweep = config::sweep_points(scenario);
  std::vector<ServedGroup> groups = groups_of(sweep, host);
  ProgressBar bar;
  for (int round = 0; round < scenario.measure.repeats; ++round)
    for (ServedGroup& group : groups)
      for (ServedPoint& served : group.points) serve_round(served, bar);
  bar.clear();
  report.heading.push_back(host.description);
  report.json["points"] = Json::array();
  ServedComparison comparison(sweep.front());
  MeasuredStudy study;
  for (ServedGroup& group : groups) {
    calibrate_on_middle_rounds(group.points);
    std::vector<TraceStep> steps = steps_to_fit(group.points, group.machine);
    sim::Machine machine = calibrate(group, steps, report);
    for (const ServedPoint& served : group.points) comparison.add(served, machine, report);
    if (!study.trace.steps.empty()) continue;  // the first group's are what is left of the study
    study.trace = {group.points.front().header, std::move(steps)};
    study.machine = std::move(machine);
  }
  comparison.finish(scenario.measure.repeats, report);
  for (const ServedGroup& group : groups) add_replicas(group, report);
  config::cite(study.machine, "stack.reached.undisturbed", sim::Evidence::measured,
               "dculab: how much longer than priced the served steps took on average");
  study::cite_fit(study.machine, std::to_string(study.trace.steps.size()) + " served steps");
  report.json["machine_facts"][study.machine.name] = machine_facts(study.machine);
  return study;
}

}  // namespace dculab::cli
