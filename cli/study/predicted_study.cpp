#include "cli/study/predicted_study.hpp"

#include <algorithm>
#include <map>

#include "cli/output/axis_title.hpp"
#include "cli/output/leaning_report.hpp"
#include "cli/output/op_report.hpp"
#include "cli/output/verdict_text.hpp"
#include "cli/search/sensitivity_report.hpp"
#include "cli/study/model_comparison.hpp"
#include "cli/study/recommendation.hpp"
#include "config/unit_text.hpp"
#include "model/plan_step.hpp"
#include "sim/calibration/confidence.hpp"
#include "sim/cost/step_price.hpp"
#include "sim/hardware/figure.hpp"
#include "sim/memory/capacity.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/served.hpp"
#include "study/scenario/stacks.hpp"
#include "study/scenario/taken_blocks.hpp"

namespace dculab::cli {
namespace {

constexpr const char* kKvHeadsKey = "model.num_key_value_heads";
constexpr const char* kBlockSizeKey = "kv_cache.block_size";
constexpr std::size_t kDetailedPoints = 128;  // larger sweeps are told without their ops

// The choices that make up the workload, as one text.
[[nodiscard]] std::string workload_text(const std::vector<config::Override>& choices) {
  std::string text;
  for (const auto& [key, value] : choices)
    if (key != kKvHeadsKey && key != kBlockSizeKey) text += key + "=" + value + " ";
  return text;
}

[[nodiscard]] std::string label_of(const std::vector<config::Override>& choices) {
  std::string text;
  for (const auto& [key, value] : choices) text += (text.empty() ? "" : " ") + axis_title(key) + "=" + value;
  return text.empty() ? "step" : text;
}

[[nodiscard]] std::vector<PricedPoint> price_points(const std::vector<StudyPoint>& points,
                                                    const sim::Machine& machine) {
  std::vector<PricedPoint> priced;
  for (const StudyPoint& point : points) {
    StepPlan plan = plan_step(point.model, point.options, point.batch);
    sim::StepPrice price = sim::price_step(machine_of(point, machine, machine), plan);
    priced.push_back({&point, std::move(price), std::move(plan)});
  }
  return priced;
}

// What our own kernels do not do although it is priced.
void add_unserved(const std::vector<StudyPoint>& points, const sim::Machine& machine, Report& report) {
  std::vector<const StudyPoint*> asked;
  for (const StudyPoint& point : points) {
    const auto is_alike = [&point](const StudyPoint* other) {
      return other->model == point.model && other->stack.has_value() == point.stack.has_value() &&
             other->options.weights == point.options.weights &&
             other->options.kv_cache_dtype == point.options.kv_cache_dtype &&
             other->options.kv_retention.policy == point.options.kv_retention.policy;
    };
    if (std::ranges::any_of(asked, is_alike)) continue;
    asked.push_back(&point);
    const sim::Machine own = machine_of(point, machine, machine);
    if (own.stack.is_own()) add_warnings(report, study::unserved(own, point.model, point.options));
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

[[nodiscard]] PointFigures figures_of(const PricedPoint& priced, const sim::Machine& on) {
  const StudyPoint& point = *priced.point;
  const sim::Machine machine = machine_of(point, on, on);
  const Seconds seconds = priced.price.seconds;
  const int context = point.batch.sequences.front().context_tokens();
  return {seconds, sim::confidence(machine, point.model, point.options, priced.plan, seconds),
          static_cast<double>(point.batch.num_tokens()) / seconds.value(), step_bound(priced.price, machine),
          sim::capacity(machine, point.model, point.options, context).max_sequences};
}

[[nodiscard]] Table empty_table(const config::Scenario& scenario, const StudyPoint& first,
                                const sim::Machine& machine) {
  Table table;
  table.title = (sweeps_models(scenario) ? "Steps" : first.model.name) + " on " + machine.name;
  for (const auto& [key, value] : first.choices) table.columns.push_back(axis_title(key));
  for (const char* column : {"step", "90 % interval", "tokens/s", "bound", "sequences that fit"})
    table.columns.emplace_back(column);
  const std::string basis = machine.calibration ? "calibrated on traces" : "not calibrated: data sheet and priors";
  const bool sweeps_stacks = std::ranges::any_of(
      first.choices, [](const auto& choice) { return choice.first == "stack" || choice.first == "stack.name"; });
  table.notes.push_back(machine.name + ": " + basis +
                        (sweeps_stacks ? "." : "; " + study::whose_kernels(machine) + "."));
  return table;
}

[[nodiscard]] std::vector<Cell> row_of(const StudyPoint& point, const PointFigures& figures) {
  std::vector<Cell> row;
  for (const auto& [key, value] : point.choices) row.emplace_back(value);
  row.emplace_back(config::short_text(figures.seconds), figures.seconds.value());
  row.emplace_back(config::short_text(figures.trust.low) + " .. " + config::short_text(figures.trust.high));
  row.emplace_back(number(figures.tokens_per_second), figures.tokens_per_second);
  row.emplace_back(figures.bound);
  row.emplace_back(std::to_string(figures.max_sequences));
  return row;
}

[[nodiscard]] Json json_of(const StudyPoint& point, const PointFigures& figures) {
  Json choices = Json::object();
  for (const auto& [key, value] : point.choices) choices[key] = value;
  return {{"choices", choices},
          {"step_seconds", figures.seconds.value()},
          {"interval_seconds", {figures.trust.low.value(), figures.trust.high.value()}},
          {"basis", sim::name(figures.trust.basis)},
          {"tokens_per_second", figures.tokens_per_second},
          {"bound", figures.bound},
          {"max_sequences", figures.max_sequences}};
}

// The sweep as a table, and as JSON under "points".
void add_points(const config::Scenario& scenario, const std::vector<PricedPoint>& priced, const sim::Machine& machine,
                Report& report, Json& json) {
  Table table = empty_table(scenario, *priced.front().point, machine);
  json["points"] = Json::array();
  for (const PricedPoint& each : priced) {
    const PointFigures figures = figures_of(each, machine);
    table.rows.push_back(row_of(*each.point, figures));
    json["points"].push_back(json_of(*each.point, figures));
    if (priced.size() <= kDetailedPoints) json["points"].back()["ops"] = ops_json(each.plan, each.price, machine);
  }
  report.tables.push_back(std::move(table));
}

}  // namespace

sim::Machine machine_of(const StudyPoint& point, sim::Machine machine, const sim::Machine& base) {
  if (point.stack) machine.stack = sim::changed_alike(*point.stack, base, machine);
  return machine;
}

namespace {

// `known`: those that were read, by name.
[[nodiscard]] sim::Stack stack_of(const config::Scenario& point, sim::Machine machine,
                                  std::map<std::string, sim::Stack>& known) {
  const auto [place, is_new] = known.try_emplace(point.stack);
  if (is_new) place->second = study::resolve_stack(point.stack, machine);
  machine.stack = place->second;
  study::apply_stack_figures(point, machine);
  return std::move(machine.stack);
}

}  // namespace

std::vector<StudyPoint> study_points(const config::Scenario& scenario, const sim::Machine& machine) {
  return study_points(scenario, machine, config::sweep_points(scenario));
}

std::vector<StudyPoint> study_points(const config::Scenario& scenario, const sim::Machine& machine,
                                     const std::vector<config::SweepPoint>& sweep) {
  std::vector<StudyPoint> points;
  std::map<std::string, std::size_t> workloads;
  std::map<std::string, sim::Stack> stacks;
  for (const config::SweepPoint& each : sweep) {
    StudyPoint point;
    point.label = label_of(each.choices);
    point.choices = each.choices;
    const ModelShape whole = study::resolve_model(each.scenario);
    if (!study::same_stack(each.scenario, scenario)) point.stack = stack_of(each.scenario, machine, stacks);
    const sim::Machine own = machine_of(point, machine, machine);
    point.model = study::resolve_part(each.scenario, whole, own);
    point.options = study::resolve_options(each.scenario, point.model, own);
    point.batch = study::resolve_batch(each.scenario.workload, point.model, point.options);
    point.choice = {whole.heads().num_key_value_heads, point.options.block_size};
    point.workload = workloads.try_emplace(workload_text(each.choices), workloads.size()).first->second;
    points.push_back(std::move(point));
  }
  return points;
}

void predict_study_on(const config::Scenario& scenario, const sim::Machine& machine, double within, Report& report) {
  const study::TakenPoints taken = study::taken_points(scenario, machine);
  const std::vector<StudyPoint> points = study_points(scenario, machine, taken.points);
  const std::vector<PricedPoint> priced = price_points(points, machine);
  add_unserved(points, machine, report);
  Json json{{"machine", machine.name}};
  add_points(scenario, priced, machine, report, json);
  if (!taken.left_out.empty()) report.tables.back().notes.push_back(left_out_text(machine.name, taken.left_out));
  const HeadsQuestion question = heads_question(scenario);
  if (sweeps_models(scenario))
    add_model_comparison(scenario, taken.points, priced, machine, report, json);
  else
    add_recommendation(priced, question, machine, report, json);
  const auto prices = [&priced, &machine](const sim::Machine& candidate) {
    std::vector<Seconds> times;
    for (const PricedPoint& each : priced)
      times.push_back(sim::price_step(machine_of(*each.point, candidate, machine), each.plan).seconds);
    return times;
  };
  json["leans_on"] = add_leanings(machine, prices, report);
  if (within > 1 && json.contains("recommendation"))
    json["sensitivity"] =
        add_sensitivity(machine, recommendation_of(priced, question, machine), within, "step_time", report);
  report.json["machines"].push_back(std::move(json));
}

}  // namespace dculab::cli
