#include "cli/study/measured_speculation.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "cli/output/axis_title.hpp"
#include "cli/output/held_out_report.hpp"
#include "cli/output/machine_figures.hpp"
#include "cli/output/op_report.hpp"
#include "cli/output/speculation_report.hpp"
#include "cli/scenario/engine_weights.hpp"
#include "config/unit_text.hpp"
#include "core/error.hpp"
#include "engine/measure/draft_bench.hpp"
#include "engine/speculation/draft_model.hpp"
#include "sim/calibration/errors.hpp"
#include "sim/calibration/fit.hpp"
#include "sim/calibration/floor_check.hpp"
#include "study/calibrate/calibrated_machine.hpp"
#include "study/decide/speculation_advice.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/resolve.hpp"

namespace dculab::cli {
namespace {

// A point of the sweep.
struct AskedDraft {
  std::vector<config::Override> choices;
  study::DraftQuestion question;  // its machine is not calibrated yet
  int batch = 1;

  [[nodiscard]] const DraftShape& shape() const { return question.options.speculative_config.shape; }
};

struct Models {
  engine::ModelWeights target, draft;
};

[[nodiscard]] AskedDraft asked_of(const config::SweepPoint& point, const sim::Machine& host) {
  const config::Scenario& scenario = point.scenario;
  const ModelShape model = study::resolve_model(scenario);
  const ModelShape part = study::resolve_part(scenario, model, host);
  const EngineOptions options = study::resolve_options(scenario, part, host);
  auto question = study::draft_question(scenario, host, model, part, options, scenario.workload.context_tokens);
  require_measurable_drafts(scenario);
  return {.choices = point.choices, .question = *std::move(question), .batch = scenario.workload.batch};
}

[[nodiscard]] Models make_models(const config::Scenario& scenario, const study::DraftQuestion& question) {
  return {
      .target = load_or_make_weights(study::find_model(scenario.model.name), question.options.weights),
      .draft = load_or_make_weights(study::find_model(scenario.speculation.model), question.speculation.draft_weights)};
}

[[nodiscard]] engine::BenchOptions bench_options(const config::Scenario& scenario) {
  return {.threads = scenario.measure.threads,
          .repeats = scenario.measure.repeats,
          .warm_up = scenario.measure.warm_up,
          .seed = static_cast<std::uint64_t>(scenario.measure.seed)};
}

// Decodes of one token at powers of two of sequences, up to as many rows as the study's steps have.
[[nodiscard]] std::vector<engine::BenchPoint> plain_steps(const std::vector<AskedDraft>& asked, const ModelShape& model,
                                                          bool is_draft) {
  std::set<int> contexts;
  int most_rows = 1;
  for (const AskedDraft& each : asked) {
    contexts.insert(each.question.context);
    most_rows = std::max(most_rows, each.batch * (is_draft ? 2 : 1 + each.shape().num_tokens()));
  }
  EngineOptions options = asked.front().question.options;
  if (is_draft) options = engine::draft_options(options, model);
  options.weights = model.layer_format();
  options.speculative_config = {};
  std::vector<engine::BenchPoint> points;
  for (const int context : contexts)
    for (int batch = 1; batch < 2 * most_rows; batch *= 2)
      points.push_back({model.name + ", batch " + std::to_string(batch) + ", context " + std::to_string(context), model,
                        options, uniform_batch(Phase::decode, batch, context)});
  return points;
}

// This machine, fitted to steps of both models without drafts.
[[nodiscard]] MeasuredStudy calibrate(const config::Scenario& scenario, const std::vector<AskedDraft>& asked,
                                      const Models& models, const sim::Machine& host, Report& report,
                                      ProgressBar& bar) {
  const auto progress = [&bar](const std::string& label, double share) { bar.update(label, share); };
  const engine::BenchOptions options = bench_options(scenario);
  MeasuredStudy study;
  study.trace = engine::measure_steps(models.target, plain_steps(asked, models.target.shape, false), options, progress);
  const Trace draft =
      engine::measure_steps(models.draft, plain_steps(asked, models.draft.shape, true), options, progress);
  study.trace.steps.insert(study.trace.steps.end(), draft.steps.begin(), draft.steps.end());
  const std::vector<sim::FloorViolation> violations = sim::floor_violations(host, study.trace.steps);
  add_refusals(violations, study.trace, report);
  std::vector<TraceStep> steps;
  for (std::size_t row = 0; row < study.trace.steps.size(); ++row)
    if (std::ranges::count(violations, row, &sim::FloorViolation::row) == 0) steps.push_back(study.trace.steps[row]);
  if (steps.size() < sim::kFewestSteps)
    throw InputError("only " + std::to_string(steps.size()) + " measured steps can be used, " +
                     std::to_string(sim::kFewestSteps) + " are needed to calibrate; widen the sweep");
  study.machine = sim::fit_machine(host, steps).machine;
  study::cite_fit(study.machine, std::to_string(steps.size()) + " measured steps without drafts");
  return study;
}

[[nodiscard]] std::vector<engine::MeasuredDraft> run_points(const config::Scenario& scenario,
                                                            const std::vector<AskedDraft>& asked, const Models& models,
                                                            ProgressBar& bar) {
  std::vector<engine::DraftBenchPoint> points;
  for (const AskedDraft& each : asked)
    points.push_back({.id = "batch " + std::to_string(each.batch) + ", draft " + shape_text(each.shape()),
                      .options = each.question.options,
                      .batch = each.batch,
                      .context_tokens = each.question.context});
  return engine::measure_drafts(models.target, models.draft, points, bench_options(scenario),
                                [&bar](const std::string& label, double share) { bar.update(label, share); });
}

// A point of the sweep, predicted and measured.
struct Compared {
  const AskedDraft* asked;
  study::DraftOutcome predicted;
  engine::MeasuredDraft measured;

  // Of as many tokens a step as were accepted: what is predicted are times.
  [[nodiscard]] double predicted_speed_up() const { return predicted.speed_up * measured.tokens / predicted.tokens; }
  [[nodiscard]] double ratio() const { return predicted_speed_up() / measured.speed_up; }
};

[[nodiscard]] Table compared_table(const std::vector<Compared>& rows) {
  Table table;
  table.title = "What drafts are worth: predicted from steps without drafts, and measured";
  for (const auto& [key, value] : rows.front().asked->choices) table.columns.push_back(axis_title(key));
  for (const char* column : {"tokens a step", "plain step", "verify", "drafting", "p/m plain", "p/m verify",
                             "p/m drafting", "predicted", "measured", "ratio", "run-to-run"})
    table.columns.emplace_back(column);
  for (const Compared& each : rows) {
    const study::DraftedTimes& times = each.predicted.times;
    const engine::MeasuredDraft& measured = each.measured;
    std::vector<Cell> row;
    for (const auto& [key, value] : each.asked->choices) row.emplace_back(value);
    row.emplace_back(number(measured.tokens), measured.tokens);
    for (const Seconds time : {measured.plain, measured.verify, measured.drafting})
      row.emplace_back(config::short_text(time), time.value());
    for (const double part :
         {times.plain / measured.plain, times.verify / measured.verify, times.drafting / measured.drafting})
      row.emplace_back(number(part), part);
    row.emplace_back(number(each.predicted_speed_up()), each.predicted_speed_up());
    row.emplace_back(number(measured.speed_up), measured.speed_up);
    row.emplace_back(number(each.ratio()), each.ratio());
    row.emplace_back("± " + percent(measured.spread / measured.speed_up, 2), measured.spread / measured.speed_up);
    table.rows.push_back(std::move(row));
  }
  return table;
}

void add_comparison(const std::vector<Compared>& rows, Report& report) {
  Table table = compared_table(rows);
  std::vector<double> errors;
  Json points = Json::array();
  for (const Compared& each : rows) {
    errors.push_back(std::abs(each.ratio() - 1));
    Json point{{"choices", Json::object()}};
    for (const auto& [key, value] : each.asked->choices) point["choices"][key] = value;
    point["predicted"] = cli::to_json(each.predicted);
    point["measured"] = {{"plain_seconds", each.measured.plain.value()},
                         {"verify_seconds", each.measured.verify.value()},
                         {"drafting_seconds", each.measured.drafting.value()},
                         {"tokens", each.measured.tokens},
                         {"speed_up", each.measured.speed_up},
                         {"spread", each.measured.spread}};
    points.push_back(std::move(point));
  }
  const auto within = std::ranges::count_if(errors, [](double error) { return error <= 0.1; });
  const double median = sim::quantile(errors, 0.5), largest = sim::quantile(errors, 1);
  table.notes.push_back("speed-up: median |error| " + percent(median) + ", largest " + percent(largest) + "; " +
                        std::to_string(within) + " of " + std::to_string(errors.size()) + " within 10 %");
  table.notes.emplace_back(
      "p/m: predicted over measured; verify: the step that judges a draft of each sequence; "
      "predicted: with the tokens a step that were accepted");
  report.tables.push_back(std::move(table));
  report.json["points"] = std::move(points);
  report.json["summary"] = {
      {"count", errors.size()}, {"median_abs_error", median}, {"largest_abs_error", largest}, {"within_10", within}};
}

}  // namespace

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

MeasuredStudy measure_speculation(const config::Scenario& scenario, const sim::Machine& host, Report& report,
                                  ProgressBar& bar) {
  std::vector<AskedDraft> asked;
  for (const config::SweepPoint& point : config::sweep_points(scenario)) asked.push_back(asked_of(point, host));
  const Models models = make_models(scenario, asked.front().question);
  MeasuredStudy study = calibrate(scenario, asked, models, host, report, bar);
  const std::vector<engine::MeasuredDraft> measured = run_points(scenario, asked, models, bar);
  bar.clear();
  report.heading.push_back(host.description);
  report.heading.push_back(std::to_string(study.trace.steps.size()) +
                           " steps without drafts calibrate: " + study.trace.header.timing);
  std::vector<Compared> rows;
  for (std::size_t index = 0; index < asked.size(); ++index) {
    asked[index].question.machine = study.machine;
    rows.push_back({&asked[index], study::judge(asked[index].question, asked[index].shape(), asked[index].batch),
                    measured[index]});
  }
  add_comparison(rows, report);
  report.json["machine_facts"][study.machine.name] = machine_facts(study.machine);
  return study;
}

}  // namespace dculab::cli
