#include "cli/serving/measured_serving_study.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "cli/output/axis_title.hpp"
#include "cli/output/machine_figures.hpp"
#include "cli/serving/measured_serving.hpp"
#include "cli/serving/serving_interval.hpp"
#include "cli/serving/serving_scenario.hpp"
#include "config/machine_file.hpp"
#include "core/error.hpp"
#include "model/plan_step.hpp"
#include "sim/calibration/fit.hpp"
#include "sim/calibration/floor_check.hpp"
#include "sim/calibration/hold_out.hpp"
#include "sim/cost/step_price.hpp"
#include "sim/serving/pauses.hpp"
#include "sim/serving/step_sample.hpp"
#include "study/calibrate/calibrated_machine.hpp"
#include "study/scenario/request_workload.hpp"

namespace dculab::cli {
namespace {

constexpr std::size_t kKeptSteps = 2000;   // of each run
constexpr std::size_t kFittedSteps = 400;  // more hardly change the fit, and take longer

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

using Figures = std::map<std::string, double>;

// A point of the sweep, with what its rounds gave.
struct ServedPoint {
  const config::SweepPoint* point;
  sim::SimulatedServer server;
  RequestWorkload workload;
  std::vector<std::vector<TraceStep>> other_rounds{};  // steps of the other requests
  std::vector<TraceStep> calibrating{};                // of these, those of the middle rounds
  TraceHeader header{};
  std::vector<Figures> rounds{};  // of the own requests
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

[[nodiscard]] std::vector<ServedPoint> points_of(const std::vector<config::SweepPoint>& sweep,
                                                 const sim::Machine& host) {
  std::vector<ServedPoint> points;
  for (const config::SweepPoint& point : sweep) {
    sim::SimulatedServer server = resolve_server(point.scenario, host);
    make_measurable(server, point.scenario, "leave --host out, or give a file of this machine");
    RequestWorkload workload = study::resolve_requests(point.scenario, server.model);
    if (same_requests(workload, other_requests(point.scenario, server.model)))
      throw InputError(point.scenario.file,
                       "workload: has no other requests to calibrate on, another seed gives the same; draw arrivals or "
                       "lengths, or compare with `dculab simulate --measure`");
    points.push_back({&point, std::move(server), std::move(workload)});
  }
  return points;
}

void serve_round(ServedPoint& served) {
  const MeasuredServer engine{.scenario = served.point->scenario,
                              .options = served.server.options,
                              .num_blocks = *served.server.num_blocks,
                              .threads = served.server.machine.compute_units,
                              .op_timing = engine::OpTiming::on,
                              .machine = &served.server.machine,
                              .most_trace_steps = kKeptSteps};
  MeasuredServing calibrating = measure(engine, other_requests(served.point->scenario, served.server.model));
  if (const std::string of = choices_text(*served.point); !of.empty())
    for (TraceStep& step : calibrating.trace.steps) step.id.insert(0, of + ", ");
  served.other_rounds.push_back(std::move(calibrating.trace.steps));
  served.header = std::move(calibrating.trace.header);
  const MeasuredServing own = measure(engine, served.workload);
  served.rounds.push_back(compared_figures(own.served.metrics, own.served.num_steps));
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

// What the simulator expects of a point, and between what.
struct Expected {
  Figures figures;
  Intervals intervals;
};

[[nodiscard]] Expected simulated(const ServedPoint& served, const sim::Machine& machine) {
  sim::SimulatedServer server = served.server;
  server.machine = machine;
  const ServiceLevel& slo = served.point->scenario.slo;
  sim::StepSample sample(sim::kSampledSteps);
  const sim::ServingRun run =
      sim::simulate(server, served.workload, slo, [&sample](const ServedStep& step, int) { sample.add(step); });
  Expected expected{compared_figures(run.metrics, run.num_steps), {}};
  expected.intervals = serving_intervals(server, served.workload, slo, sim::step_confidence(server, sample.batches()),
                                         expected.figures, 0);
  return expected;
}

// "12 ms .. 14 ms"
[[nodiscard]] Cell range_cell(const std::string& metric, double low, double high) {
  return {figure_cell(metric, low).text + " .. " + figure_cell(metric, high).text};
}

[[nodiscard]] Cell rounds_cell(const std::vector<Figures>& rounds, const std::string& metric) {
  std::vector<double> values;
  for (const Figures& figures : rounds) values.push_back(figures.at(metric));
  const auto [lowest, highest] = std::ranges::minmax_element(values);
  return range_cell(metric, *lowest, *highest);
}

struct Verdicts {
  int within = 0;  // their limits
  int inside = 0;  // their intervals
};

void add_point(const ServedPoint& served, const sim::Machine& machine, Table& table, Report& report, Verdicts& all) {
  const Expected expected = simulated(served, machine);
  const Figures measured = median_figures(served.rounds);
  Json json{{"choices", Json::object()}, {"metrics", Json::object()}};
  for (const auto& [key, value] : served.point->choices) json["choices"][key] = value;
  for (const auto& [metric, most] : kLimits) {
    if (!measured.contains(metric) || !expected.figures.contains(metric)) continue;
    const double figure = expected.figures.at(metric), real = measured.at(metric), off = figure / real - 1;
    const auto [low, high] = expected.intervals.at(metric);
    const bool holds = std::abs(off) <= most;
    all.within += holds ? 1 : 0;
    all.inside += real >= low && real <= high ? 1 : 0;
    std::vector<Cell> row;
    for (const auto& [key, value] : served.point->choices) row.emplace_back(value);
    row.insert(row.end(),
               {metric, figure_cell(metric, figure), range_cell(metric, low, high), figure_cell(metric, real),
                Cell((off < 0 ? "" : "+") + percent(off, 2), off), Cell(percent(most), most), holds ? "yes" : "no"});
    row.push_back(rounds_cell(served.rounds, metric));
    table.rows.push_back(std::move(row));
    json["metrics"][metric] = {
        {"simulated", figure}, {"interval", {low, high}}, {"measured", real}, {"limit", most}, {"within", holds}};
  }
  report.json["points"].push_back(std::move(json));
}

void add_comparison(const std::vector<ServedPoint>& points, const sim::Machine& machine, Report& report) {
  Table table;
  table.title = "Simulated against measured on this machine";
  for (const auto& [key, value] : points.front().point->choices) table.columns.push_back(axis_title(key));
  for (const char* column :
       {"metric", "simulated", "90 % interval", "measured", "off by", "limit", "within", "all rounds measured"})
    table.columns.emplace_back(column);
  report.json["points"] = Json::array();
  Verdicts all;
  for (const ServedPoint& served : points) add_point(served, machine, table, report, all);
  const std::string of_all = " of " + std::to_string(table.rows.size());
  table.notes = {"The median of " + std::to_string(points.front().rounds.size()) + " rounds, metric by metric",
                 std::to_string(all.within) + of_all + " within their limits, " + std::to_string(all.inside) + of_all +
                     " inside their intervals: what the steps' 90 % interval, all steps wrong alike, makes of them"};
  report.json["within"] = all.within;
  report.json["inside_interval"] = all.inside;
  report.json["compared"] = table.rows.size();
  report.tables.push_back(std::move(table));
}

}  // namespace

MeasuredStudy measure_serving_study(const config::Scenario& scenario, const sim::Machine& host, Report& report) {
  const std::vector<config::SweepPoint> sweep = config::sweep_points(scenario);
  std::vector<ServedPoint> points = points_of(sweep, host);
  MeasuredStudy study;
  for (int round = 0; round < scenario.measure.repeats; ++round)
    for (ServedPoint& served : points) serve_round(served);
  calibrate_on_middle_rounds(points);
  study.trace.header = points.front().header;
  study.trace.steps = steps_to_fit(points, host);
  sim::Fit fit = sim::calibrate(host, study.trace.steps);
  fit.machine.stack.reached.undisturbed = undisturbed(points, fit.machine);
  report.heading.push_back(host.description);
  report.heading.push_back("calibrated on " + std::to_string(study.trace.steps.size()) +
                           " steps of other requests at the same rates: median |error| " +
                           percent(fit.error.median_abs_error) + ", P90 " + percent(fit.error.p90_abs_error) +
                           ", bias " + percent(fit.error.bias) + "; pauses take " +
                           percent(1 - fit.machine.stack.reached.undisturbed) + " of short steps' time");
  add_comparison(points, fit.machine, report);
  config::cite(fit.machine, "stack.reached.undisturbed", sim::Evidence::measured,
               "dculab: how much longer than priced the served steps took on average");
  study::cite_fit(fit.machine, std::to_string(study.trace.steps.size()) + " served steps");
  study.machine = fit.machine;
  report.json["machine_facts"][study.machine.name] = machine_facts(study.machine);
  return study;
}

}  // namespace dculab::cli
