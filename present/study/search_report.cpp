#include "present/study/search_report.hpp"

#include <algorithm>
#include <cmath>

#include "config/unit_text.hpp"
#include "present/study/metric_text.hpp"
#include "present/study/sensitivity_report.hpp"
#include "present/study/simulation_report.hpp"
#include "present/values/leaning_report.hpp"
#include "present/values/machine_figures.hpp"
#include "present/values/op_report.hpp"
#include "present/values/verdict_text.hpp"
#include "sim/cost/step_price.hpp"
#include "study/scenario/axis_title.hpp"
#include "study/search/point_pricer.hpp"

namespace dculab::present {
namespace {

[[nodiscard]] std::string outcome_word(config::Outcome outcome) {
  return outcome == config::Outcome::met ? "met" : outcome == config::Outcome::excluded ? "excluded" : "refused";
}

[[nodiscard]] std::string aim_text(config::Goal goal, const std::string& metric) {
  return (goal == config::Goal::maximize ? "largest " : "smallest ") + metric;
}

[[nodiscard]] Json goal_json(config::Goal goal, const std::string& metric) {
  return {{"goal", goal == config::Goal::maximize ? "maximize" : "minimize"}, {"metric", metric}};
}

[[nodiscard]] Table points_table(const study::SweepSpace& space, const std::vector<study::KeptPoint>& points,
                                 std::size_t shown) {
  Table table;
  for (const config::SweepAxis& axis : space.axes()) table.columns.push_back(study::axis_title(axis.key));
  const std::vector<std::size_t> metrics = shown_metrics(space.scenario());
  for (const std::size_t metric : metrics) table.columns.push_back(metric_title(space.metrics()[metric]));
  table.columns.emplace_back("bound");
  for (std::size_t index = 0; index < std::min(points.size(), shown); ++index) {
    const study::KeptPoint& point = points[index];
    std::vector<Cell>& row = table.rows.emplace_back();
    for (const auto& [key, value] : space.choices(point.number)) row.emplace_back(value);
    for (const std::size_t metric : metrics)
      row.emplace_back(metric_text(space.metrics()[metric], point.figures[metric]), point.figures[metric]);
    row.emplace_back(point.bound);
  }
  if (points.size() > shown) table.notes.push_back(std::to_string(points.size() - shown) + " more are in the JSON");
  return table;
}

// What there is to tell.
struct Search {
  const study::SweepSpace& space;
  const study::SearchSummary& summary;
  const std::vector<study::KeptPoint>& told;
  const study::PointTrusts& trusts;
};

// `machine`, `basis`, `interval_seconds` or `step_time_interval`; of a point that is not told nothing.
void add_trust(const Search& search, std::uint64_t point, Json& json) {
  const auto found = search.trusts.find(point);
  if (found == search.trusts.end()) return;
  const study::PointTrust& trust = found->second;
  json["machine"] = trust.machine;
  json["basis"] = sim::name(trust.basis);
  json[search.space.is_served() ? "step_time_interval" : "interval_seconds"] = {trust.low, trust.high};
}

// `leans_on` and `machine_facts` of each machine, as the first of its points has it; notes below the last table.
void report_machines(const Search& search, Report& report) {
  study::PointPricer pricer(search.space);
  for (const study::KeptPoint& point : search.told) {
    Json& leans_on = report.json["leans_on"][search.trusts.at(point.number).machine];
    if (!leans_on.is_null()) continue;
    const study::SweepCase& asked = pricer.at(point.number);
    leans_on = add_leanings(asked.machine, sim::leanings(asked.machine, study::prices_of(asked)), report,
                            asked.is_served() ? Priced::served_steps : Priced::answer);
    report.json["machine_facts"][asked.machine.name] = machine_facts(asked.machine, search.space.axes());
  }
}

[[nodiscard]] Json point_json(const Search& search, const study::KeptPoint& point) {
  const study::SweepSpace& space = search.space;
  Json json{{"point", point.number}, {"choices", choices_json(space.choices(point.number))}};
  for (std::size_t metric = 0; metric < point.figures.size(); ++metric)
    if (!std::isnan(point.figures[metric])) json[std::string(space.metrics()[metric])] = point.figures[metric];
  json["bound"] = point.bound;
  add_trust(search, point.number, json);
  return json;
}

void report_counts(const study::SweepSpace& space, const study::SearchSummary& summary, Report& report) {
  const std::uint64_t met = summary.count(config::Outcome::met), excluded = summary.count(config::Outcome::excluded);
  const std::uint64_t refused = summary.count(config::Outcome::refused);
  std::string text = std::to_string(space.size()) + (space.size() == 1 ? " point: " : " points: ") +
                     std::to_string(met) + " meet the constraints, " + std::to_string(excluded) + " do not";
  if (refused > 0) text += ", " + std::to_string(refused) + " cannot be; the first: " + summary.refusal();
  report.heading.push_back(text);
  if (met == 0) report.heading.push_back("no point meets the constraints and objective.subject_to; allow more");
  report.json["points"] = {{"all", space.size()}, {"met", met}, {"excluded", excluded}, {"refused", refused}};
  if (refused > 0) report.json["points"]["first_refusal"] = summary.refusal();
}

// How sure the best point is: of its step, or of the steps that serve the requests.
void add_trust_note(const study::PointTrust& trust, bool is_served, Report& report) {
  report.tables.back().notes.push_back(
      is_served ? "steps of the first one take " + trust_text({trust.low, trust.high, trust.basis})
                : "90 % interval of the first one's step: " + config::short_text(Seconds(trust.low)) + " .. " +
                      config::short_text(Seconds(trust.high)) + " (" + std::string(sim::name(trust.basis)) + ")");
}

void report_best(const Search& search, Report& report) {
  const auto& [space, summary, told, trusts] = search;
  const config::Objective& objective = space.scenario().objective;
  report.tables.push_back(points_table(space, summary.best(), study::kShownBest));
  report.tables.back().title = "Best: " + aim_text(objective.goal, objective.metric);
  report.tables.back().notes.clear();
  report.json["objective"] = goal_json(objective.goal, objective.metric);
  report.json["best"] = Json::array();
  for (std::size_t index = 0; index < std::min(summary.best().size(), study::kShownBest); ++index)
    report.json["best"].push_back(point_json(search, summary.best()[index]));
  if (summary.best().empty()) return;
  report_machines(search, report);
  const std::uint64_t best = summary.best().front().number;
  add_trust_note(trusts.at(best), space.is_served(), report);
  if (space.is_served()) return;
  study::PointPricer pricer(space);
  const study::SweepCase& step = pricer.at(best);
  report.json["best"][0]["ops"] = ops_json(step.plan, sim::price_step(step.machine, step.plan), step.machine);
}

void report_values(const Search& search, Report& report) {
  const study::SweepSpace& space = search.space;
  const study::SearchSummary& summary = search.summary;
  const std::size_t metric = space.metric(space.scenario().objective.metric);
  Table table;
  table.title = "Best with each value";
  table.columns = {"axis", "value", metric_title(space.metrics()[metric]), "against the best"};
  Json json = Json::array();
  for (const study::BestOfValue& each : summary.best_of_values()) {
    const std::string& key = space.axes()[each.axis].key;
    std::vector<Cell>& row = table.rows.emplace_back(std::vector<Cell>{study::axis_title(key), each.value});
    Json& entry = json.emplace_back(Json{{"key", key}, {"value", each.value}, {"best", nullptr}});
    if (!each.best) {
      row.insert(row.end(), {"-", "-"});
      continue;
    }
    const double figure = each.best->figures[metric], ratio = figure / summary.best().front().figures[metric];
    row.emplace_back(metric_text(space.metrics()[metric], figure), figure);
    if (std::isfinite(ratio))
      row.emplace_back(ratio == 1 ? "" : number(ratio) + " x", exact_number(ratio));
    else
      row.emplace_back("-");
    entry["best"] = point_json(search, *each.best);
  }
  if (table.rows.empty()) return;
  report.tables.push_back(std::move(table));
  report.json["best_of_values"] = std::move(json);
}

// For the heat map: with each group and block size what the best point there has.
void report_pairs(const Search& search, Report& report) {
  const study::SweepSpace& space = search.space;
  const std::string& metric = space.scenario().objective.metric;
  for (const study::KeptPoint& point : search.summary.best_of_pairs()) {
    Json json{{"point", point.number}, {"choices", choices_json(space.choices(point.number))}};
    json[metric] = point.figures[space.metric(metric)];
    json["bound"] = point.bound;
    report.json["best_of_pairs"].push_back(std::move(json));
  }
}

void report_front(const Search& search, Report& report) {
  const study::SweepSpace& space = search.space;
  if (space.scenario().pareto.empty()) return;
  const std::vector<study::KeptPoint> front = search.summary.front();
  std::string aims;
  for (const config::Aim& aim : space.scenario().pareto) {
    aims += (aims.empty() ? "" : ", ") + aim_text(aim.goal, aim.metric);
    report.json["aims"].push_back(goal_json(aim.goal, aim.metric));
  }
  report.tables.push_back(points_table(space, front, study::kShownFront));
  report.tables.back().title = "Pareto front: " + aims;
  report.json["pareto"] = Json::array();
  for (const study::KeptPoint& point : front) report.json["pareto"].push_back(point_json(search, point));
}

void report_sensitivity(const study::SweepSpace& space, const study::SearchSensitivity& found, Report& report) {
  report.json["sensitivity"] = add_sensitivity(found.machine, found.choice, found.figures, found.within,
                                               space.scenario().objective.metric, report);
  std::vector<std::string>& notes = report.tables.back().notes;
  notes.push_back("another answer: one that is better by more than " + percent(found.tie, 2) +
                  (space.is_served() ? ", since batches form otherwise when steps take a little longer. What 1 % more "
                                       "brings is taken from 5 % each way"
                                     : ""));
  if (found.contenders < space.size())
    notes.push_back("among " + std::to_string(found.contenders) + " of " + std::to_string(space.size()) +
                    " points: the best ones, and the best with each value");
}

[[nodiscard]] std::string points_head(const study::SweepSpace& space) {
  std::string line = "point";
  for (const config::SweepAxis& axis : space.axes()) line += "," + csv_field(axis.key);
  line += ",outcome";
  for (const std::string_view metric : space.metrics()) line.append(",").append(metric);
  return line + ",bound\n";
}

[[nodiscard]] std::string points_rows(const study::SweepSpace& space, std::uint64_t begin,
                                      const config::SearchChunk& chunk) {
  std::string rows;
  std::vector<std::uint64_t> positions;
  for (std::size_t index = 0; index < chunk.points.size(); ++index) {
    const config::SearchPoint& point = chunk.points[index];
    rows += std::to_string(begin + index);
    config::positions_at(space.axes(), begin + index, positions);
    for (std::size_t axis = 0; axis < positions.size(); ++axis)
      rows += "," + csv_field(space.axes()[axis].value(positions[axis]));
    rows += "," + outcome_word(point.outcome);
    const bool priced = point.outcome != config::Outcome::refused;
    for (const double figure : chunk.figures(index))
      rows += priced && !std::isnan(figure) ? "," + study::whole_text(figure) : ",";
    rows += priced ? "," + chunk.bounds[point.bound] + "\n" : ",\n";
  }
  return rows;
}

}  // namespace

PointsFile::PointsFile(const study::SweepSpace& space, const std::string& file) : space_(space) {
  if (file.empty()) return;
  file_.emplace(file);
  file_->write(points_head(space));
}

study::OnPoints PointsFile::on_points() {
  if (!file_) return {};
  return [this](std::uint64_t begin, const config::SearchChunk& points) {
    file_->write(points_rows(space_, begin, points));
  };
}

void PointsFile::keep() {
  if (file_) file_->keep();
}

void add_shard(const study::SweepSpace& space, const study::SearchOptions& options, Report& report) {
  const sim::ChunkRange chunks = study::chunks_of(space, options.shard, options.shards);
  const std::uint64_t points = study::chunk_points(space);
  const std::uint64_t begin = chunks.begin * points, end = std::min(space.size(), chunks.end * points);
  report.heading.push_back("shard " + std::to_string(options.shard) + "/" + std::to_string(options.shards) + ": " +
                           std::to_string(end - begin) + " of " + std::to_string(space.size()) + " points are in " +
                           options.journal + "; when all shards are there: dculab merge");
  report.json["shard"] = {{"shard", options.shard},
                          {"shards", options.shards},
                          {"first_point", begin},
                          {"points", end - begin},
                          {"all_points", space.size()}};
}

void report_search(const study::SweepSpace& space, const study::SearchSummary& summary,
                   const study::SearchAnswer& answer, Report& report) {
  add_warnings(report, answer.refused);
  const Search search{space, summary, answer.told, answer.trusts};
  report_counts(space, summary, report);
  report_best(search, report);
  for (const study::ServedBlockSizes& each : answer.block_sizes)
    add_block_sizes(each.machine, each.kv_heads, each.blocks, report);
  report_values(search, report);
  report_pairs(search, report);
  report_front(search, report);
  if (answer.sensitivity) report_sensitivity(space, *answer.sensitivity, report);
}

}  // namespace dculab::present
