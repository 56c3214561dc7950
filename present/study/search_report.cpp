#include "present/study/search_report.hpp"

#include <algorithm>
#include <cmath>

#include "config/unit_text.hpp"
#include "present/output/csv_text.hpp"
#include "present/output/field_csv.hpp"
#include "present/study/search_fields.hpp"
#include "present/study/simulation_report.hpp"
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

[[nodiscard]] Table points_table(const study::SweepSpace& space, const std::vector<study::KeptPoint>& points,
                                 std::size_t shown) {
  Table table;
  for (const config::SweepAxis& axis : space.axes()) table.columns.push_back(study::axis_title(axis.key));
  const std::vector<std::size_t> metrics = shown_metrics(space.scenario());
  for (const std::size_t metric : metrics) table.columns.push_back(metric_title(space.metrics()[metric]));
  table.columns.emplace_back("bound");
  for (std::size_t index = 0; index < std::min(points.size(), shown); ++index) {
    const study::KeptPoint& point = points[index];
    Row& row = table.rows.emplace_back();
    for (const auto& [key, value] : space.choices(point.number)) row.emplace_back(value);
    for (const std::size_t metric : metrics)
      row.emplace_back(metric_text(space.metrics()[metric], point.figures[metric]));
    row.emplace_back(point.bound);
  }
  if (points.size() > shown) table.notes.push_back(std::to_string(points.size() - shown) + " more are in the JSON");
  return table;
}

// What there is to tell.
struct Search {
  const study::SweepSpace& space;
  const study::SearchSummary& summary;
  const std::vector<study::KeptPoint>& reported;
  const study::PointTrusts& trusts;
};

[[nodiscard]] ReportedPoint reported_point(const Search& search, const study::KeptPoint& point) {
  ReportedPoint reported{{search.space, point}};
  const auto found = search.trusts.find(point.number);
  if (found != search.trusts.end()) reported.trust = SearchedTrust{found->second, search.space.is_served()};
  return reported;
}

// Of each machine, as the first of its points has it; notes below the last table.
void report_machines(const Search& search, Report& report, ReportedSearch& reported) {
  study::PointPricer pricer(search.space);
  reported.input_sensitivity.emplace();
  reported.machine_facts.emplace();
  for (const study::KeptPoint& point : search.reported) {
    const std::string& machine = search.trusts.at(point.number).machine;
    if (std::ranges::find(*reported.input_sensitivity, machine, [](const auto& each) { return each.first; }) !=
        reported.input_sensitivity->end())
      continue;
    const study::SweepCase& asked = pricer.at(point.number);
    reported.input_sensitivity->emplace_back(
        machine,
        note_input_sensitivities(asked.machine, sim::input_sensitivities(asked.machine, study::prices_of(asked)),
                                 report.tables.back(), asked.is_served() ? Priced::served_steps : Priced::answer));
    reported.machine_facts->emplace_back(asked.machine.name, machine_facts(asked.machine, search.space.axes()));
  }
}

[[nodiscard]] PointCounts report_counts(const study::SweepSpace& space, const study::SearchSummary& summary,
                                        Report& report) {
  const std::uint64_t met = summary.count(config::Outcome::met), excluded = summary.count(config::Outcome::excluded);
  const std::uint64_t refused = summary.count(config::Outcome::refused);
  std::string text = std::to_string(space.size()) + (space.size() == 1 ? " point: " : " points: ") +
                     std::to_string(met) + " meet the constraints, " + std::to_string(excluded) + " do not";
  if (refused > 0) text += ", " + std::to_string(refused) + " cannot be; the first: " + summary.refusal();
  report.heading.push_back(text);
  if (met == 0) report.heading.push_back("no point meets the constraints and objective.subject_to; allow more");
  return {space.size(), met, excluded, refused, when(refused > 0, [&] { return summary.refusal(); })};
}

// How sure the best point is: of its step, or of the steps that serve the requests.
void add_trust_note(const study::PointTrust& trust, bool is_served, Report& report) {
  report.tables.back().notes.push_back(
      is_served ? "steps of the first one take " + trust_text({trust.low, trust.high, trust.basis})
                : "90 % interval of the first one's step: " + config::short_text(Seconds(trust.low)) + " .. " +
                      config::short_text(Seconds(trust.high)) + " (" + std::string(sim::name(trust.basis)) + ")");
}

void report_best(const Search& search, Report& report, ReportedSearch& reported) {
  const auto& [space, summary, shown, trusts] = search;
  const config::Objective& objective = space.scenario().objective;
  report.tables.push_back(points_table(space, summary.best(), study::kShownBest));
  report.tables.back().title = "Best: " + aim_text(objective.goal, objective.metric);
  report.tables.back().notes.clear();
  if (summary.best().empty()) return;
  study::PointPricer pricer(space);
  for (std::size_t index = 0; index < std::min(summary.best().size(), study::kShownBest); ++index) {
    ReportedPoint point = reported_point(search, summary.best()[index]);
    if (index == 0 && !space.is_served()) {
      const study::SweepCase& step = pricer.at(summary.best().front().number);
      const sim::StepPrice price = sim::price_step(step.machine, step.plan);
      point.ops = priced_ops(step.plan, price, step.machine);
    }
    reported.best.push_back(point);
  }
  report_machines(search, report, reported);
  add_trust_note(trusts.at(summary.best().front().number), space.is_served(), report);
}

void report_values(const Search& search, Report& report, ReportedSearch& reported) {
  const study::SweepSpace& space = search.space;
  const study::SearchSummary& summary = search.summary;
  const std::size_t metric = space.metric(space.scenario().objective.metric);
  Table table;
  table.title = "Best with each value";
  table.columns = {"axis", "value", metric_title(space.metrics()[metric]), "against the best"};
  std::vector<Part<BestOfValue>> values;
  for (const study::BestOfValue& each : summary.best_of_values()) {
    const std::string& key = space.axes()[each.axis].key;
    Row& row = table.rows.emplace_back(Row{study::axis_title(key), each.value});
    if (!each.best) {
      row.insert(row.end(), {"-", "-"});
      values.push_back(BestOfValue{key, each.value});
      continue;
    }
    values.push_back(BestOfValue{key, each.value, reported_point(search, *each.best)});
    const double figure = each.best->figures[metric], ratio = figure / summary.best().front().figures[metric];
    row.emplace_back(metric_text(space.metrics()[metric], figure));
    if (std::isfinite(ratio))
      row.emplace_back(ratio == 1 ? "" : number(ratio) + " x");
    else
      row.emplace_back("-");
  }
  if (table.rows.empty()) return;
  report.tables.push_back(std::move(table));
  reported.best_of_values = std::move(values);
}

// For the heat map: with each group and block size what the best point there has.
void tell_pairs(const Search& search, ReportedSearch& reported) {
  std::vector<Part<PairPoint>> pairs;
  for (const study::KeptPoint& point : search.summary.best_of_pairs())
    pairs.push_back(PairPoint{{search.space, point}});
  if (!pairs.empty()) reported.best_of_pairs = std::move(pairs);
}

// For the chart of throughput against latency.
void tell_all(const Search& search, ReportedSearch& reported) {
  if (search.space.is_served()) reported.slo = search.space.scenario().slo;
  if (search.summary.all().empty()) return;
  reported.all.emplace();
  for (const study::WeighedPoint& each : search.summary.all())
    reported.all->push_back(WeighedPoint{{search.space, each.point}, each.meets_constraints});
}

void report_front(const Search& search, Report& report, ReportedSearch& reported) {
  const study::SweepSpace& space = search.space;
  if (space.scenario().pareto.empty()) return;
  const std::vector<study::KeptPoint> front = search.summary.front();
  std::string aims;
  reported.aims.emplace();
  for (const config::Aim& aim : space.scenario().pareto) {
    aims += (aims.empty() ? "" : ", ") + aim_text(aim.goal, aim.metric);
    reported.aims->push_back({aim.goal, aim.metric});
  }
  report.tables.push_back(points_table(space, front, study::kShownFront));
  report.tables.back().title = "Pareto front: " + aims;
  reported.pareto.emplace();
  for (const study::KeptPoint& point : front) reported.pareto->push_back(reported_point(search, point));
}

[[nodiscard]] std::vector<ReportedSensitivity> report_sensitivity(const study::SweepSpace& space,
                                                                  const study::SearchSensitivity& found,
                                                                  Report& report) {
  std::vector<ReportedSensitivity> reported = add_sensitivity(found.machine, found.choice, found.figures, found.within,
                                                              space.scenario().objective.metric, report);
  std::vector<std::string>& notes = report.tables.back().notes;
  notes.push_back("another answer: one that is better by more than " + percent(found.tie, 2) +
                  (space.is_served() ? ", since batches form otherwise when steps take a little longer. What 1 % more "
                                       "brings is taken from 5 % each way"
                                     : ""));
  if (found.contenders < space.size())
    notes.push_back("among " + std::to_string(found.contenders) + " of " + std::to_string(space.size()) +
                    " points: the best ones, and the best with each value");
  return reported;
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
  set_answer(ReportedShards{{options.shard, options.shards, begin, end - begin, space.size()}}, report);
}

void report_search(const study::SweepSpace& space, const study::SearchSummary& summary,
                   const study::SearchAnswer& answer, Report& report) {
  add_warnings(report, answer.refused);
  const config::Objective& objective = space.scenario().objective;
  const Search search{space, summary, answer.reported, answer.trusts};
  ReportedSearch reported{report_counts(space, summary, report), {objective.goal, objective.metric}};
  report_best(search, report, reported);
  for (const study::ServedBlockSizes& each : answer.block_sizes) {
    if (!reported.block_sizes) reported.block_sizes.emplace();
    reported.block_sizes->push_back(tell_block_sizes(each.machine, each.kv_heads, each.blocks, report.heading));
  }
  report_values(search, report, reported);
  tell_pairs(search, reported);
  tell_all(search, reported);
  report_front(search, report, reported);
  if (answer.sensitivity) reported.sensitivity = report_sensitivity(space, *answer.sensitivity, report);
  set_answer(reported, report);
}

}  // namespace dculab::present
