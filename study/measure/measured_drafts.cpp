#include "study/measure/measured_drafts.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>

#include "config/draft_shape_text.hpp"
#include "core/error.hpp"
#include "engine/speculation/draft_model.hpp"
#include "sim/calibration/errors.hpp"
#include "sim/calibration/fit.hpp"
#include "study/calibrate/calibrated_machine.hpp"
#include "study/calibrate/refused_steps.hpp"
#include "study/measure/engine_weights.hpp"
#include "study/measure/measured_sweep.hpp"
#include "study/scenario/locate.hpp"

namespace dculab::study {
namespace {

// 1, 2, 4 and 8 sequences of each model make as many steps as a fit needs.
constexpr int kFewestRows = 8;

[[nodiscard]] Trace run_plain_steps(std::span<const DraftPoint> points, const DraftPair& models,
                                    const engine::BenchOptions& options, const engine::BenchProgress& progress) {
  Trace trace = engine::measure_steps(models.target, plain_steps(points, models.target.shape, PairRole::target),
                                      options, progress);
  const Trace draft =
      engine::measure_steps(models.draft, plain_steps(points, models.draft.shape, PairRole::draft), options, progress);
  trace.steps.insert(trace.steps.end(), draft.steps.begin(), draft.steps.end());
  return trace;
}

// The host, fitted to those steps of `trace` that are not refused.
[[nodiscard]] sim::Machine fitted(const sim::Machine& host, const Trace& trace,
                                  const std::vector<sim::FloorViolation>& refused) {
  std::vector<TraceStep> steps;
  for (const std::size_t row : believed_rows(refused, trace.steps.size())) steps.push_back(trace.steps[row]);
  if (steps.size() < sim::kFewestSteps)
    throw InputError("only " + std::to_string(steps.size()) + " measured steps can be used, " +
                     std::to_string(sim::kFewestSteps) + " are needed to calibrate; widen the sweep");
  sim::Machine machine = sim::fit_machine(host, steps).machine;
  cite_fit(machine, std::to_string(steps.size()) + " measured steps without drafts");
  return machine;
}

[[nodiscard]] std::vector<engine::MeasuredDraft> run_points(std::span<const DraftPoint> points, const DraftPair& models,
                                                            const engine::BenchOptions& options,
                                                            const engine::BenchProgress& progress) {
  std::vector<engine::DraftBenchPoint> bench;
  for (const DraftPoint& point : points)
    bench.push_back(
        {.id = "batch " + std::to_string(point.batch) + ", draft " + config::draft_shape_text(point.shape()),
         .options = point.question.options,
         .batch = point.batch,
         .context_tokens = point.question.context});
  return engine::measure_drafts(models.target, models.draft, bench, options, progress);
}

}  // namespace

DraftQuestion as_it_runs(DraftQuestion asked, const DraftPair& models) {
  asked.model = asked.part = models.target.shape;
  asked.speculation.draft = models.draft.shape;
  asked.speculation.draft_weights = models.draft.shape.layer_format();
  return asked;
}

void require_measurable_drafts(const config::Scenario& scenario) {
  const SpeculativeConfig& config = scenario.options.speculative_config;
  if (config.method != SpeculativeMethod::draft_model)
    throw InputError(scenario.file,
                     "engine.speculative_config: a measured study of drafts runs method draft_model at "
                     "every point");
  if (config.rejection_sample_method != RejectionSampleMethod::synthetic)
    throw InputError(scenario.file,
                     "engine.speculative_config: a measured study has random weights, which agree on "
                     "nothing; set rejection_sample_method: synthetic and synthetic_acceptance_rates");
}

std::vector<DraftPoint> measurable_drafts(const config::Scenario& scenario, const sim::Machine& host) {
  std::vector<DraftPoint> points;
  for (const config::SweepPoint& point : config::sweep_points(scenario)) {
    points.push_back(draft_point(point, host));
    require_measurable_drafts(point.scenario);
  }
  return points;
}

std::vector<engine::BenchPoint> plain_steps(std::span<const DraftPoint> points, const ModelShape& model,
                                            PairRole role) {
  std::set<int> contexts;
  int most_rows = kFewestRows;
  for (const DraftPoint& point : points) {
    contexts.insert(point.question.context);
    const int rows_each = role == PairRole::draft ? 2 : 1 + point.shape().num_tokens();
    most_rows = std::max(most_rows, point.batch * rows_each);
  }
  EngineOptions options = points.front().question.options;
  if (role == PairRole::draft) options = engine::draft_options(options, model);
  options.weights = model.layer_format();
  options.speculative_config = {};
  std::vector<engine::BenchPoint> steps;
  for (const int context : contexts)
    for (int batch = 1; batch < 2 * most_rows; batch *= 2)
      steps.push_back({model.name + ", batch " + std::to_string(batch) + ", context " + std::to_string(context), model,
                       options, uniform_batch(Phase::decode, batch, context)});
  return steps;
}

DraftErrors errors_of(std::span<const ComparedDraft> points) {
  std::vector<double> errors;
  for (const ComparedDraft& point : points) errors.push_back(std::abs(point.ratio() - 1));
  return {.count = std::ssize(errors),
          .within_10 = std::ranges::count_if(errors, [](double error) { return error <= 0.1; }),
          .median = sim::quantile(errors, 0.5),
          .largest = sim::quantile(errors, 1)};
}

MeasuredDrafts measure_drafts(std::vector<DraftPoint> points, const DraftPair& models, const sim::Machine& host,
                              const engine::BenchOptions& options, const engine::BenchProgress& progress) {
  MeasuredDrafts result{
      .plain = run_plain_steps(points, models, options, progress), .refused = {}, .machine = {}, .points = {}};
  std::vector<engine::MeasuredDraft> measured = run_points(points, models, options, progress);
  // Machines get faster and slower within minutes: what the fit knows is from before the drafts and from after them.
  for (TraceStep& step : run_plain_steps(points, models, options, progress).steps) {
    step.id += ", after";
    result.plain.steps.push_back(std::move(step));
  }
  result.refused = sim::floor_violations(host, result.plain.steps);
  result.machine = fitted(host, result.plain, result.refused);
  for (std::size_t index = 0; index < points.size(); ++index) {
    const DraftPoint& point = points[index];
    DraftQuestion question = as_it_runs(point.question, models);
    question.machine = result.machine;
    result.points.push_back({.choices = point.choices,
                             .predicted = judge(question, point.shape(), point.batch),
                             .measured = std::move(measured[index])});
  }
  return result;
}

MeasuredDrafts measure_drafts(const config::Scenario& scenario, const sim::Machine& host,
                              const engine::BenchProgress& progress) {
  std::vector<DraftPoint> points = measurable_drafts(scenario, host);
  const DraftQuestion& question = points.front().question;
  const DraftPair models{
      .target = load_or_make_weights(find_model(scenario.model.name), question.options.weights),
      .draft = load_or_make_weights(find_model(scenario.speculation.model), question.speculation.draft_weights)};
  return measure_drafts(std::move(points), models, host, bench_options(scenario.measure), progress);
}

}  // namespace dculab::study
