#include "cli/study/measured_study.hpp"

#include <cmath>
#include <filesystem>
#include <optional>

#include "cli/output/held_out_report.hpp"
#include "cli/output/machine_figures.hpp"
#include "cli/output/op_report.hpp"
#include "cli/study/predicted_study.hpp"
#include "cli/study/recommendation.hpp"
#include "config/unit_text.hpp"
#include "core/error.hpp"
#include "engine/measure/step_bench.hpp"
#include "engine/parallel/division.hpp"
#include "model/plan_step.hpp"
#include "sim/calibration/confidence.hpp"
#include "sim/calibration/fit.hpp"
#include "sim/calibration/floor_check.hpp"
#include "sim/calibration/hold_out.hpp"
#include "sim/cost/step_price.hpp"
#include "sim/study/recommend.hpp"
#include "study/calibrate/calibrated_machine.hpp"
#include "study/calibrate/held_out.hpp"
#include "study/decide/attention_difference.hpp"
#include "study/measure/engine_weights.hpp"
#include "study/scenario/axis_title.hpp"
#include "study/scenario/locate.hpp"
#include "study/validate/refused_steps.hpp"

namespace dculab::cli {
namespace {

// The folder's own weights; of a folder without any, random ones in the format that the scenario asks for.
[[nodiscard]] engine::ModelWeights weights_of(const config::Scenario& scenario, WeightFormat asked) {
  const std::filesystem::path folder = study::find_model(scenario.model.name);
  if (!study::has_weights(folder)) return study::load_or_make_weights(folder, asked);
  engine::ModelWeights weights = study::load_or_make_weights(folder, "");
  if (asked != WeightFormat{weights.shape.dtype, 0})
    throw InputError(scenario.file, "weights: a study that measures runs the checkpoint's own (" +
                                        std::string(name(weights.shape.dtype)) + "); leave `weights` out");
  return weights;
}

// As the engine divides it, which is what is priced then, too.
[[nodiscard]] engine::BenchPoint bench_point(const config::Scenario& scenario, const engine::ModelWeights& weights,
                                             study::StudyPoint& point) {
  for (ModelShape* shape : {&point.whole, &point.model}) {  // embedding and head are priced as they are run
    shape->dtype = weights.shape.dtype;
    shape->quantized_lm_head = weights.shape.quantized_lm_head;
    shape->plain = weights.shape.plain;
  }
  const engine::Division division = engine::division_of(point.model);
  engine::require_divisible(point.whole, point.options.weights, division);
  if (engine::part_of(point.whole, point.options.weights, division, point.options.expert_load) != point.model)
    throw InputError(scenario.file,
                     "deployment: what is measured are tensor_parallel_size processes of this machine, whose routed "
                     "experts are divided (expert_parallel_size the same) or not (1), once each; leave the rest out");
  return {point_label(point), point.whole, point.options, point.batch, division};
}

[[nodiscard]] Trace run_points(const config::Scenario& scenario, std::vector<study::StudyPoint>& points,
                               ProgressBar& bar) {
  const engine::ModelWeights weights = weights_of(scenario, points.front().options.weights);
  std::vector<engine::BenchPoint> bench;
  for (study::StudyPoint& point : points) {
    if (point.options.weights != points.front().options.weights)
      throw InputError(scenario.file, "weights: a study that measures runs one format; sweep something else");
    bench.push_back(bench_point(scenario, weights, point));
  }
  return engine::measure_steps(weights, bench, study::bench_options(scenario.measure),
                               [&bar](const std::string& label, double share) { bar.update(label, share); });
}

// Steps that can be true, and the points they belong to.
struct Accepted {
  std::vector<TraceStep> steps;
  std::vector<const study::StudyPoint*> points;
};

[[nodiscard]] Accepted accept(const Trace& trace, const std::vector<study::StudyPoint>& points,
                              const sim::Machine& host, Report& report) {
  const std::vector<sim::FloorViolation> violations = sim::floor_violations(host, trace.steps);
  add_refusals(violations, trace, report);
  Accepted accepted;
  for (const std::size_t row : study::believed_rows(violations, trace.steps.size())) {
    accepted.steps.push_back(trace.steps[row]);
    accepted.points.push_back(&points[row]);
  }
  if (accepted.steps.size() < sim::kFewestSteps)
    throw InputError("only " + std::to_string(accepted.steps.size()) + " measured steps can be used, " +
                     std::to_string(sim::kFewestSteps) + " are needed to calibrate and to score; widen the sweep");
  return accepted;
}

void add_held_out_rows(const Accepted& accepted, const sim::HoldOutScore& score, Report& report) {
  Table table;
  table.title = "Held-out steps: what the simulator, calibrated on the others, predicts";
  for (const auto& [key, value] : accepted.points.front()->choices) table.columns.push_back(study::axis_title(key));
  for (const char* column : {"predicted", "measured", "ratio", "bound", "90 % interval", "run-to-run"})
    table.columns.emplace_back(column);
  report.json["points"] = Json::array();
  for (std::size_t index = 0; index < score.held_out.size(); ++index) {
    const std::size_t row_index = score.held_out[index];
    const study::StudyPoint& point = *accepted.points[row_index];
    const TraceStep& step = accepted.steps[row_index];
    const StepPlan plan = plan_step(point.model, point.options, point.batch);
    const study::PricedPoint priced{&point, sim::price_step(score.fit.machine, plan), plan};
    const sim::Confidence trust =
        sim::confidence(score.fit.machine, point.model, point.options, plan, priced.price.seconds);
    const std::string bound = step_bound(priced.price, score.fit.machine);
    const double ratio = priced.price.seconds / step.duration;
    const double spread = step.spread / step.duration;
    std::vector<Cell> row;
    for (const auto& [key, value] : point.choices) row.emplace_back(value);
    row.emplace_back(config::short_text(priced.price.seconds), priced.price.seconds.value());
    row.emplace_back(config::short_text(step.duration), step.duration.value());
    row.emplace_back(number(ratio), ratio);
    row.emplace_back(bound);
    row.emplace_back(config::short_text(trust.low) + " .. " + config::short_text(trust.high));
    row.emplace_back("± " + percent(spread, 2), spread);
    table.rows.push_back(std::move(row));
    report.json["points"].push_back({{"id", point_label(point)},
                                     {"predicted_seconds", priced.price.seconds.value()},
                                     {"measured_seconds", step.duration.value()},
                                     {"interval_seconds", {trust.low.value(), trust.high.value()}},
                                     {"spread_seconds", step.spread.value()},
                                     {"basis", sim::name(trust.basis)},
                                     {"bound", bound}});
  }
  report.tables.push_back(std::move(table));
}

// Of all held-out steps of several processes.
void add_exchanges(const Accepted& accepted, const sim::HoldOutScore& score, Report& report) {
  Table table;
  table.title = "Of them, exchanges between the processes";
  for (const auto& [key, value] : accepted.points.front()->choices) table.columns.push_back(study::axis_title(key));
  for (const char* column : {"predicted", "measured", "ratio", "of the step"}) table.columns.emplace_back(column);
  std::vector<double> errors;
  for (std::size_t row_index = 0; row_index < score.held_out.size(); ++row_index) {
    const std::size_t index = score.held_out[row_index];
    const study::StudyPoint& point = *accepted.points[index];
    const TraceStep& step = accepted.steps[index];
    const std::optional<study::ExchangeTimes> times = study::exchange_times(step, score.fit.machine);
    if (!times) continue;
    const double ratio = times->predicted / times->measured, share = times->measured / step.duration;
    std::vector<Cell> row;
    for (const auto& [key, value] : point.choices) row.emplace_back(value);
    row.emplace_back(config::short_text(times->predicted), times->predicted.value());
    row.emplace_back(config::short_text(times->measured), times->measured.value());
    row.emplace_back(number(ratio), ratio);
    row.emplace_back(percent(share), share);
    table.rows.push_back(std::move(row));
    errors.push_back(std::abs(ratio - 1));
    report.json["points"][row_index]["exchange_seconds"] = {{"predicted", times->predicted.value()},
                                                            {"measured", times->measured.value()}};
  }
  if (errors.empty()) return;
  table.notes.push_back("median |error| of the exchanges " + percent(sim::quantile(errors, 0.5)) + ", P90 " +
                        percent(sim::quantile(errors, 0.9)) +
                        "; each is timed from when the last process has come to it");
  report.json["exchange_error"] = {{"count", errors.size()},
                                   {"median_abs_error", sim::quantile(errors, 0.5)},
                                   {"p90_abs_error", sim::quantile(errors, 0.9)}};
  report.tables.push_back(std::move(table));
}

void add_summary(const Accepted& accepted, const sim::HoldOutScore& score, Report& report) {
  std::vector<double> spreads;
  for (const TraceStep& step : accepted.steps) spreads.push_back(step.spread / step.duration);
  const double median_spread = sim::quantile(spreads, 0.5);
  const double p90_spread = sim::quantile(spreads, 0.9);
  std::vector<std::string>& notes = report.tables.back().notes;
  notes.push_back("calibrated on " + std::to_string(score.fitted.size()) + " steps, scored on " +
                  std::to_string(score.error.count) + " others: median |error| " +
                  percent(score.error.median_abs_error) + ", P90 " + percent(score.error.p90_abs_error) + ", bias " +
                  percent(score.error.bias) + "; " + percent(score.covered) + " inside their 90 % interval");
  notes.push_back("run-to-run spread of the measurement itself (half the interquartile range): median " +
                  percent(median_spread) + ", P90 " + percent(p90_spread));
  report.json["summary"] = {{"count", score.error.count},
                            {"median_abs_error", score.error.median_abs_error},
                            {"p90_abs_error", score.error.p90_abs_error},
                            {"bias", score.error.bias},
                            {"covered_by_interval", score.covered},
                            {"median_spread", median_spread},
                            {"p90_spread", p90_spread}};
}

[[nodiscard]] std::string choice_text(sim::Choice choice) {
  return study::heads_text(choice.kv_heads) + ", block " + std::to_string(choice.block_size);
}

// Following the predicted choice, over all measured points.
void add_regret(const Accepted& accepted, const sim::Machine& machine, Report& report) {
  const std::vector<sim::PredictedMeasured> pairs = sim::compare_steps(machine, accepted.steps);
  std::vector<sim::ChoiceTime> predicted, measured;
  for (std::size_t row = 0; row < accepted.points.size(); ++row) {
    const study::StudyPoint& point = *accepted.points[row];
    predicted.push_back({point.choice, point.workload, pairs[row].predicted});
    measured.push_back({point.choice, point.workload, pairs[row].measured});
  }
  const auto regret = sim::decision_regret(predicted, measured);
  if (!regret) return;
  report.tables.back().notes.push_back("predicted best: " + choice_text(regret->predicted_best) +
                                       "; measured best: " + choice_text(regret->measured_best) + "; decision regret " +
                                       percent(regret->regret) + " (at worst " + percent(regret->worst_single) +
                                       " when each workload is decided on its own), over all measured steps");
  report.json["regret"] = {{"predicted_best", choice_text(regret->predicted_best)},
                           {"measured_best", choice_text(regret->measured_best)},
                           {"regret", regret->regret},
                           {"worst_single_workload", regret->worst_single}};
}

}  // namespace

MeasuredStudy measure_study(const config::Scenario& scenario, const sim::Machine& host, Report& report,
                            ProgressBar& bar) {
  std::vector<study::StudyPoint> points = study::study_points(scenario, host);
  MeasuredStudy study;
  study.trace = run_points(scenario, points, bar);
  bar.clear();
  report.heading.push_back(host.description);
  report.heading.push_back(std::to_string(points.size()) + " steps measured: " + study.trace.header.timing);
  const Accepted accepted = accept(study.trace, points, host, report);
  sim::HoldOutScore score = sim::calibrate_with_hold_out(host, accepted.steps, scenario.measure.held_out,
                                                         static_cast<std::uint64_t>(scenario.measure.seed));
  add_held_out_rows(accepted, score, report);
  add_summary(accepted, score, report);
  add_regret(accepted, score.fit.machine, report);
  add_exchanges(accepted, score, report);
  study::cite_fit(score.fit.machine, std::to_string(score.fitted.size()) + " measured steps");
  study.machine = score.fit.machine;
  report.json["machine_facts"][study.machine.name] = machine_facts(study.machine);
  return study;
}

}  // namespace dculab::cli
