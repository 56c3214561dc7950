#include "study/measure/measured_sweep.hpp"

#include <cmath>
#include <filesystem>

#include "core/error.hpp"
#include "engine/parallel/division.hpp"
#include "model/plan_step.hpp"
#include "sim/calibration/fit.hpp"
#include "sim/cost/step_price.hpp"
#include "study/calibrate/calibrated_machine.hpp"
#include "study/measure/engine_weights.hpp"
#include "study/scenario/locate.hpp"
#include "study/validate/refused_steps.hpp"

namespace dculab::study {
namespace {

// The folder's own weights; of a folder without any, random ones in the format that the scenario asks for.
[[nodiscard]] engine::ModelWeights weights_of(const config::Scenario& scenario, WeightFormat asked) {
  const std::filesystem::path folder = find_model(scenario.model.name);
  if (!has_weights(folder)) return load_or_make_weights(folder, asked);
  engine::ModelWeights weights = load_or_make_weights(folder, "");
  if (asked != WeightFormat{weights.shape.dtype, 0})
    throw InputError(scenario.file, "weights: a study that measures runs the checkpoint's own (" +
                                        std::string(name(weights.shape.dtype)) + "); leave `weights` out");
  return weights;
}

// As the engine divides it, which is what is priced then, too.
[[nodiscard]] engine::BenchPoint bench_point(const config::Scenario& scenario, const engine::ModelWeights& weights,
                                             StudyPoint& point) {
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

[[nodiscard]] Trace run_points(const config::Scenario& scenario, std::vector<StudyPoint>& points,
                               const engine::BenchProgress& progress) {
  const engine::ModelWeights weights = weights_of(scenario, points.front().options.weights);
  std::vector<engine::BenchPoint> bench;
  for (StudyPoint& point : points) {
    if (point.options.weights != points.front().options.weights)
      throw InputError(scenario.file, "weights: a study that measures runs one format; sweep something else");
    bench.push_back(bench_point(scenario, weights, point));
  }
  return engine::measure_steps(weights, bench, bench_options(scenario.measure), progress);
}

// Keeps the steps that can be true.
void believe(MeasuredSweep& sweep, const sim::Machine& host) {
  sweep.refused = sim::floor_violations(host, sweep.trace.steps);
  for (const std::size_t row : believed_rows(sweep.refused, sweep.trace.steps.size())) {
    sweep.steps.push_back(sweep.trace.steps[row]);
    sweep.step_points.push_back(&sweep.points[row]);
  }
  if (sweep.steps.size() < sim::kFewestSteps)
    throw InputError("only " + std::to_string(sweep.steps.size()) + " measured steps can be used, " +
                     std::to_string(sim::kFewestSteps) + " are needed to calibrate and to score; widen the sweep");
}

[[nodiscard]] HeldOutStep held_out_step(const StudyPoint& point, const TraceStep& measured,
                                        const sim::Machine& machine) {
  const StepPlan plan = plan_step(point.model, point.options, point.batch);
  const sim::StepPrice price = sim::price_step(machine, plan);
  return {&point,
          &measured,
          price.seconds,
          sim::confidence(machine, point.model, point.options, plan, price.seconds),
          sim::step_bound(price, machine),
          exchange_times(measured, machine)};
}

[[nodiscard]] std::optional<sim::Regret> regret_of(const MeasuredSweep& sweep) {
  const std::vector<sim::PredictedMeasured> pairs = sim::compare_steps(sweep.score.fit.machine, sweep.steps);
  std::vector<sim::ChoiceTime> predicted, measured;
  for (std::size_t row = 0; row < sweep.steps.size(); ++row) {
    const StudyPoint& point = *sweep.step_points[row];
    predicted.push_back({point.choice, point.workload, pairs[row].predicted});
    measured.push_back({point.choice, point.workload, pairs[row].measured});
  }
  return sim::decision_regret(predicted, measured);
}

[[nodiscard]] std::optional<ExchangeErrors> exchange_errors_of(const std::vector<HeldOutStep>& held_out) {
  std::vector<double> errors;
  for (const HeldOutStep& step : held_out)
    if (const auto& times = step.exchanges) errors.push_back(std::abs(times->predicted / times->measured - 1));
  if (errors.empty()) return std::nullopt;
  return ExchangeErrors{errors.size(), sim::quantile(errors, 0.5), sim::quantile(errors, 0.9)};
}

[[nodiscard]] RunToRun spread_of(const std::vector<TraceStep>& steps) {
  std::vector<double> spreads;
  for (const TraceStep& step : steps) spreads.push_back(step.spread / step.duration);
  return {sim::quantile(spreads, 0.5), sim::quantile(spreads, 0.9)};
}

}  // namespace

MeasuredSweep measure_sweep(const config::Scenario& scenario, const sim::Machine& host,
                            const engine::BenchProgress& progress) {
  MeasuredSweep sweep;
  sweep.points = study_points(scenario, host);
  sweep.trace = run_points(scenario, sweep.points, progress);
  believe(sweep, host);
  sweep.score = sim::calibrate_with_hold_out(host, sweep.steps, scenario.measure.held_out,
                                             static_cast<std::uint64_t>(scenario.measure.seed));
  for (const std::size_t row : sweep.score.held_out)
    sweep.held_out.push_back(held_out_step(*sweep.step_points[row], sweep.steps[row], sweep.score.fit.machine));
  sweep.exchange_errors = exchange_errors_of(sweep.held_out);
  sweep.spread = spread_of(sweep.steps);
  sweep.regret = regret_of(sweep);
  cite_fit(sweep.score.fit.machine, std::to_string(sweep.score.fitted.size()) + " measured steps");
  return sweep;
}

}  // namespace dculab::study
