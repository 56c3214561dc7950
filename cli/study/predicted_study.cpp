#include "cli/study/predicted_study.hpp"

#include <algorithm>
#include <map>

#include "cli/output/axis_title.hpp"
#include "cli/output/leaning_report.hpp"
#include "cli/output/op_report.hpp"
#include "cli/scenario/resolve.hpp"
#include "cli/search/sensitivity_report.hpp"
#include "cli/study/recommendation.hpp"
#include "config/unit_text.hpp"
#include "sim/calibration/confidence.hpp"
#include "sim/cost/step_price.hpp"
#include "sim/memory/capacity.hpp"

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

void add_axes_columns(Table& table, const std::vector<StudyPoint>& points) {
  for (const auto& [key, value] : points.front().choices) table.columns.push_back(axis_title(key));
}

[[nodiscard]] Json axes_json(const StudyPoint& point) {
  Json json = Json::object();
  for (const auto& [key, value] : point.choices) json[key] = value;
  return json;
}

}  // namespace

std::vector<StudyPoint> study_points(const config::Scenario& scenario, sim::MachineKind kind) {
  std::vector<StudyPoint> points;
  std::map<std::string, std::size_t> workloads;
  for (const config::SweepPoint& each : config::sweep_points(scenario)) {
    StudyPoint point;
    point.label = label_of(each.choices);
    point.choices = each.choices;
    point.model = resolve_model(each.scenario);
    point.options = resolve_options(each.scenario, point.model, kind);
    point.batch = resolve_batch(each.scenario.workload, point.model, point.options);
    point.choice = {point.model.num_key_value_heads, point.options.block_size};
    point.workload = workloads.try_emplace(workload_text(each.choices), workloads.size()).first->second;
    points.push_back(std::move(point));
  }
  return points;
}

void predict_study_on(const config::Scenario& scenario, const sim::Machine& machine, double within, Report& report) {
  const std::vector<StudyPoint> points = study_points(scenario, machine.kind);
  Table table;
  table.title = points.front().model.name + " on " + machine.name;
  add_axes_columns(table, points);
  for (const char* column : {"step", "90 % interval", "tokens/s", "bound", "sequences that fit"})
    table.columns.emplace_back(column);
  Json json{{"machine", machine.name}, {"points", Json::array()}};
  std::vector<PricedPoint> priced;
  for (const StudyPoint& point : points) {
    const StepPlan plan = plan_step(point.model, point.options, point.batch);
    priced.push_back({&point, sim::price_step(machine, plan), plan});
    const Seconds seconds = priced.back().price.seconds;
    const sim::Confidence trust = sim::confidence(machine, point.model, point.options, plan, seconds);
    const double rate = point.batch.num_tokens() / seconds.value();
    const std::string bound = step_bound(priced.back().price, machine);
    const auto fits = sim::capacity(machine, point.model, point.options, point.batch.sequences.front().context_tokens())
                          .max_sequences;
    std::vector<Cell> row;
    for (const auto& [key, value] : point.choices) row.emplace_back(value);
    row.emplace_back(config::short_text(seconds), seconds.value());
    row.emplace_back(config::short_text(trust.low) + " .. " + config::short_text(trust.high));
    row.emplace_back(number(rate), rate);
    row.emplace_back(bound);
    row.emplace_back(std::to_string(fits));
    table.rows.push_back(std::move(row));
    json["points"].push_back({{"choices", axes_json(point)},
                              {"step_seconds", seconds.value()},
                              {"interval_seconds", {trust.low.value(), trust.high.value()}},
                              {"basis", sim::name(trust.basis)},
                              {"tokens_per_second", rate},
                              {"bound", bound},
                              {"max_sequences", fits}});
    if (points.size() <= kDetailedPoints) json["points"].back()["ops"] = ops_json(plan, priced.back().price, machine);
  }
  const std::string basis = machine.calibration ? "calibrated on traces" : "not calibrated: data sheet and priors";
  table.notes.push_back(machine.name + ": " + basis + ".");
  report.tables.push_back(std::move(table));
  add_recommendation(priced, resolve_model(scenario).num_key_value_heads, machine, report, json);
  const auto prices = [&priced](const sim::Machine& candidate) {
    std::vector<Seconds> times;
    for (const PricedPoint& each : priced) times.push_back(sim::price_step(candidate, each.plan).seconds);
    return times;
  };
  json["leans_on"] = add_leanings(machine, prices, report);
  if (within > 1 && json.contains("recommendation"))
    json["sensitivity"] = add_sensitivity(machine, recommendation_of(priced), within, "step_time", report);
  report.json["machines"].push_back(std::move(json));
}

}  // namespace dculab::cli
