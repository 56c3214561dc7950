#include "cli/study/predicted_study.hpp"

#include <algorithm>
#include <map>

#include "config/unit_text.hpp"
#include "model/plan_step.hpp"
#include "present/study/model_comparison.hpp"
#include "present/study/recommendation.hpp"
#include "present/study/sensitivity_report.hpp"
#include "present/values/leaning_report.hpp"
#include "present/values/op_report.hpp"
#include "present/values/verdict_text.hpp"
#include "sim/calibration/confidence.hpp"
#include "sim/cost/step_price.hpp"
#include "sim/hardware/figure.hpp"
#include "sim/memory/capacity.hpp"
#include "study/decide/compared_models.hpp"
#include "study/scenario/axis_title.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/served.hpp"
#include "study/scenario/stacks.hpp"
#include "study/scenario/taken_blocks.hpp"

namespace dculab::cli {
namespace {

constexpr std::size_t kDetailedPoints = 128;  // larger sweeps are told without their ops

// What our own kernels do not do although it is priced.
void add_unserved(const std::vector<study::StudyPoint>& points, const sim::Machine& machine, present::Report& report) {
  std::vector<const study::StudyPoint*> asked;
  for (const study::StudyPoint& point : points) {
    const auto is_alike = [&point](const study::StudyPoint* other) {
      return other->model == point.model && other->stack.has_value() == point.stack.has_value() &&
             other->options.weights == point.options.weights &&
             other->options.kv_cache_dtype == point.options.kv_cache_dtype &&
             other->options.kv_retention.policy == point.options.kv_retention.policy;
    };
    if (std::ranges::any_of(asked, is_alike)) continue;
    asked.push_back(&point);
    const sim::Machine own = study::machine_of(point, machine, machine);
    if (own.stack.is_own()) present::add_warnings(report, study::unserved(own, point.model, point.options));
  }
}

// What is told of a point.
struct PointFigures {
  Seconds seconds;
  sim::Confidence trust;
  double tokens_per_second = 0;
  std::string bound;
  std::int64_t max_sequences = 0;
};

[[nodiscard]] PointFigures figures_of(const study::PricedPoint& priced, const sim::Machine& on) {
  const study::StudyPoint& point = *priced.point;
  const sim::Machine machine = study::machine_of(point, on, on);
  const Seconds seconds = priced.price.seconds;
  const int context = point.batch.sequences.front().context_tokens();
  return {seconds, sim::confidence(machine, point.model, point.options, priced.plan, seconds),
          static_cast<double>(point.batch.num_tokens()) / seconds.value(), step_bound(priced.price, machine),
          sim::capacity(machine, point.model, point.options, context).max_sequences};
}

[[nodiscard]] present::Table empty_table(const config::Scenario& scenario, const study::StudyPoint& first,
                                         const sim::Machine& machine) {
  present::Table table;
  table.title = (study::sweeps_models(scenario) ? "Steps" : first.model.name) + " on " + machine.name;
  for (const auto& [key, value] : first.choices) table.columns.push_back(study::axis_title(key));
  for (const char* column : {"step", "90 % interval", "tokens/s", "bound", "sequences that fit"})
    table.columns.emplace_back(column);
  const std::string basis = machine.calibration ? "calibrated on traces" : "not calibrated: data sheet and priors";
  const bool sweeps_stacks = std::ranges::any_of(
      first.choices, [](const auto& choice) { return choice.first == "stack" || choice.first == "stack.name"; });
  table.notes.push_back(machine.name + ": " + basis +
                        (sweeps_stacks ? "." : "; " + study::whose_kernels(machine) + "."));
  return table;
}

[[nodiscard]] std::vector<present::Cell> row_of(const study::StudyPoint& point, const PointFigures& figures) {
  std::vector<present::Cell> row;
  for (const auto& [key, value] : point.choices) row.emplace_back(value);
  row.emplace_back(config::short_text(figures.seconds), figures.seconds.value());
  row.emplace_back(config::short_text(figures.trust.low) + " .. " + config::short_text(figures.trust.high));
  row.emplace_back(present::number(figures.tokens_per_second), figures.tokens_per_second);
  row.emplace_back(figures.bound);
  const bool fits = figures.max_sequences >= std::ssize(point.batch.sequences);
  row.emplace_back(std::to_string(figures.max_sequences) + (fits ? "" : ": no room"));
  return row;
}

[[nodiscard]] present::Json json_of(const study::StudyPoint& point, const PointFigures& figures) {
  return {{"choices", present::choices_json(point.choices)},
          {"step_seconds", figures.seconds.value()},
          {"interval_seconds", {figures.trust.low.value(), figures.trust.high.value()}},
          {"basis", sim::name(figures.trust.basis)},
          {"tokens_per_second", figures.tokens_per_second},
          {"bound", figures.bound},
          {"max_sequences", figures.max_sequences}};
}

// The sweep as a table, and as JSON under "points".
void add_points(const config::Scenario& scenario, const std::vector<study::PricedPoint>& priced,
                const sim::Machine& machine, present::Report& report, present::Json& json) {
  present::Table table = empty_table(scenario, *priced.front().point, machine);
  json["points"] = present::Json::array();
  for (const study::PricedPoint& each : priced) {
    const PointFigures figures = figures_of(each, machine);
    table.rows.push_back(row_of(*each.point, figures));
    json["points"].push_back(json_of(*each.point, figures));
    if (priced.size() <= kDetailedPoints)
      json["points"].back()["ops"] = present::ops_json(each.plan, each.price, machine);
  }
  report.tables.push_back(std::move(table));
}

}  // namespace

void predict_study_on(const config::Scenario& scenario, const sim::Machine& machine, double within,
                      present::Report& report) {
  const study::TakenPoints taken = study::taken_points(scenario, machine);
  const std::vector<study::StudyPoint> points = study::study_points(scenario, machine, taken.points);
  const std::vector<study::PricedPoint> priced = study::price_points(points, machine);
  add_unserved(points, machine, report);
  present::Json json{{"machine", machine.name}};
  add_points(scenario, priced, machine, report, json);
  if (!taken.left_out.empty())
    report.tables.back().notes.push_back(present::left_out_text(machine.name, taken.left_out));
  const study::HeadsQuestion question = study::heads_question(scenario);
  if (study::sweeps_models(scenario))
    present::add_model_comparison(scenario, taken.points, priced, machine, report, json);
  else
    present::add_recommendation(priced, question, machine, report, json);
  const auto prices = [&priced, &machine](const sim::Machine& candidate) {
    std::vector<Seconds> times;
    for (const study::PricedPoint& each : priced)
      times.push_back(sim::price_step(study::machine_of(*each.point, candidate, machine), each.plan).seconds);
    return times;
  };
  json["leans_on"] = present::add_leanings(machine, prices, report);
  if (within > 1 && json.contains("recommendation")) {
    const sim::Question asked = study::recommendation_of(priced, question, machine);
    json["sensitivity"] = present::add_sensitivity(
        machine, asked(machine).choice, sim::sensitivities(machine, asked, within), within, "step_time", report);
  }
  report.json["machines"].push_back(std::move(json));
}

}  // namespace dculab::cli
