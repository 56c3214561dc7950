#include "cli/serving/served_comparison.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "cli/serving/comparison_table.hpp"
#include "cli/serving/serving_report.hpp"
#include "model/few_heads.hpp"
#include "sim/serving/step_sample.hpp"
#include "study/decide/serving_figures.hpp"
#include "study/evaluate/serving_intervals.hpp"
#include "study/scenario/axis_title.hpp"
#include "study/scenario/serving_scenario.hpp"

namespace dculab::cli {
namespace {

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
  study::Intervals intervals;
  HeadSetCounts head_sets{};  // where there are two
};

[[nodiscard]] Expected simulated(const ServedPoint& served, const sim::Machine& machine) {
  sim::SimulatedServer server = served.server;
  server.machine = machine;
  const ServiceLevel& slo = served.point->scenario.slo;
  sim::StepSample sample(sim::kSampledSteps);
  const sim::ServingRun run =
      sim::simulate(server, served.workload, slo, [&sample](const ServedStep& step, int) { sample.add(step); });
  Expected expected{study::compared_figures(run.metrics, run.num_steps), {}, run.head_sets};
  expected.intervals = study::serving_intervals(server, served.workload, slo,
                                                sim::step_confidence(server, sample.batches()), expected.figures, 0);
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

// Where there are two sets of KV heads: who got which, there and here.
void add_head_sets(const ServedPoint& served, const HeadSetCounts& simulated, Json& json, Report& report) {
  const auto& few = served.server.few_heads;
  if (!few || !served.last) return;
  const ModelShape& many = served.server.model;
  HeadSetFigures figures{.counts = simulated,
                         .many = many.heads().num_key_value_heads,
                         .few = few->model.heads().num_key_value_heads,
                         .few_weights = few_heads_footprint(many, *few, served.server.options.weights)};
  const std::string of = study::choices_text(*served.point);
  report.heading.push_back((of.empty() ? "" : of + ": ") + "simulated: " + head_set_line(figures));
  json["groups_by_load"]["simulated"] = head_set_json(figures);
  figures.counts = served.last->head_sets;
  report.heading.push_back((of.empty() ? "" : of + ": ") + "measured in the last round: " + head_set_line(figures));
  json["groups_by_load"]["measured"] = head_set_json(figures);
}

}  // namespace

ServedComparison::ServedComparison(const config::SweepPoint& first) {
  table_.title = "Simulated against measured on this machine";
  for (const auto& [key, value] : first.choices) table_.columns.push_back(study::axis_title(key));
  for (const char* column :
       {"metric", "simulated", "90 % interval", "measured", "off by", "limit", "within", "all rounds measured"})
    table_.columns.emplace_back(column);
}

void ServedComparison::add(const ServedPoint& served, const sim::Machine& machine, Report& report) {
  const Expected expected = simulated(served, machine);
  const Figures measured = median_figures(served.rounds);
  Json json{{"choices", Json::object()}, {"metrics", Json::object()}};
  for (const auto& [key, value] : served.point->choices) json["choices"][key] = value;
  for (const auto& [metric, most] : kLimits) {
    if (!measured.contains(metric) || !expected.figures.contains(metric)) continue;
    const double figure = expected.figures.at(metric), real = measured.at(metric), off = figure / real - 1;
    const auto [low, high] = expected.intervals.at(metric);
    const bool holds = std::abs(off) <= most;
    within_ += holds ? 1 : 0;
    inside_ += real >= low && real <= high ? 1 : 0;
    std::vector<Cell> row;
    for (const auto& [key, value] : served.point->choices) row.emplace_back(value);
    row.insert(row.end(),
               {metric, figure_cell(metric, figure), range_cell(metric, low, high), figure_cell(metric, real),
                Cell((off < 0 ? "" : "+") + percent(off, 2), off), Cell(percent(most), most), holds ? "yes" : "no"});
    row.push_back(rounds_cell(served.rounds, metric));
    table_.rows.push_back(std::move(row));
    json["metrics"][metric] = {
        {"simulated", figure}, {"interval", {low, high}}, {"measured", real}, {"limit", most}, {"within", holds}};
  }
  if (served.last && !served.last->replicas.empty()) json["replicas"] = served_replica_json(*served.last);
  add_head_sets(served, expected.head_sets, json, report);
  report.json["points"].push_back(std::move(json));
}

void ServedComparison::finish(int rounds, Report& report) {
  const std::string of_all = " of " + std::to_string(table_.rows.size());
  table_.notes = {"The median of " + std::to_string(rounds) + " rounds, metric by metric",
                  std::to_string(within_) + of_all + " within their limits, " + std::to_string(inside_) + of_all +
                      " inside their intervals: what the steps' 90 % interval, all steps wrong alike, makes of them"};
  report.json["within"] = within_;
  report.json["inside_interval"] = inside_;
  report.json["compared"] = table_.rows.size();
  report.tables.push_back(std::move(table_));
}

}  // namespace dculab::cli
