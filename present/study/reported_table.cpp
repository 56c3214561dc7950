#include "present/study/reported_table.hpp"

#include <cmath>

#include "present/study/service_tables.hpp"
#include "present/study/variant_text.hpp"
#include "study/scenario/axis_title.hpp"

namespace dculab::present {
namespace {

[[nodiscard]] std::string signed_points(double share) {
  return (share < 0 ? "−" : "+") + number(std::abs(100 * share), 3);
}

// Figures that stand alone, not as changes.
[[nodiscard]] Table figures_table(const std::vector<study::ReportedScore>& verdicts,
                                  const std::vector<study::ComparedPoint>& points, const config::Compare& compare,
                                  const std::string& machine) {
  Table table;
  table.title = "Predicted on " + machine + " beside reported";
  table.columns = axes_columns(points);
  for (const char* column : {"variant", "metric", "predicted", "90 % interval", "reported", "apart", "inside", "bound"})
    table.columns.emplace_back(column);
  for (const study::ReportedScore& verdict : verdicts) {
    const std::string& metric = verdict.figure->metric;
    Row row = axes_cells(*verdict.point->point);
    row.emplace_back(verdict.figure->variant);
    row.emplace_back(metric);
    row.emplace_back(figure_text(metric, verdict.predicted));
    row.emplace_back(figure_text(metric, verdict.of_baseline.low) + " .. " +
                     figure_text(metric, verdict.of_baseline.high));
    row.emplace_back(figure_text(metric, *verdict.figure->value));
    const double apart = verdict.predicted / *verdict.figure->value - 1;
    row.emplace_back(signed_percent(apart));
    const double reported = *verdict.figure->value;
    row.emplace_back(verdict.of_baseline.low <= reported && reported <= verdict.of_baseline.high ? "yes" : "no");
    row.emplace_back(bound_of(*verdict.variant, metric));
    table.rows.push_back(std::move(row));
  }
  table.notes.push_back("reported: " + compare.source);
  return table;
}

// "52.3 s → 57.4 s", where the publication has them.
[[nodiscard]] std::string reported_text(const config::ReportedFigure& figure) {
  const std::string change = signed_percent(figure.change);
  if (!figure.baseline || !figure.value) return change;
  return figure_text(figure.metric, *figure.baseline) + " → " + figure_text(figure.metric, *figure.value) + ", " +
         change;
}

[[nodiscard]] std::string predicted_text(const study::ReportedScore& verdict) {
  const std::string& metric = verdict.figure->metric;
  const std::string change = signed_percent(verdict.predicted);
  if (!verdict.figure->baseline) return change;
  return figure_text(metric, verdict.baseline().figures.at(metric)) + " → " +
         figure_text(metric, verdict.variant->figures.at(metric)) + ", " + change;
}

// "20.1 s .. 43.2 s; −5.1 % .. −1.2 %", of the baseline and of the change.
[[nodiscard]] std::string interval_text(const study::ReportedScore& verdict) {
  const std::string& metric = verdict.figure->metric;
  const auto text = [](const std::string& low, const std::string& high) { return low + " .. " + high; };
  std::string of_change;
  if (const auto& change = verdict.of_change)
    of_change = text(signed_percent(change->low), signed_percent(change->high));
  if (!verdict.figure->baseline) return of_change;
  return text(figure_text(metric, verdict.of_baseline.low), figure_text(metric, verdict.of_baseline.high)) +
         (of_change.empty() ? "" : "; ") + of_change;
}

[[nodiscard]] Table reported_table(const std::vector<study::ReportedScore>& verdicts,
                                   const std::vector<study::ComparedPoint>& points, const config::Compare& compare,
                                   const std::string& machine) {
  Table table;
  table.title = "Predicted on " + machine + " beside reported: change against " + compare.baseline;
  table.columns = axes_columns(points);
  for (const char* column :
       {"variant", "metric", "predicted", "90 % interval", "reported", "points apart", "bound of "})
    table.columns.emplace_back(column);
  table.columns.back() += compare.baseline;
  for (const study::ReportedScore& verdict : verdicts) {
    Row row = axes_cells(*verdict.point->point);
    row.emplace_back(verdict.figure->variant);
    row.emplace_back(verdict.figure->metric);
    row.emplace_back(predicted_text(verdict));
    row.emplace_back(interval_text(verdict));
    row.emplace_back(reported_text(*verdict.figure));
    const double apart = verdict.predicted - verdict.figure->change;
    row.emplace_back(signed_points(apart));
    row.emplace_back(largest_share(verdict.baseline()) + "; attention " +
                     percent(study::attention_share(verdict.baseline()), 2));
    table.rows.push_back(std::move(row));
  }
  table.notes.push_back("reported: " + compare.source);
  return table;
}

}  // namespace

Row axes_cells(const config::SweepPoint& point) {
  Row row;
  for (const auto& [key, value] : point.choices) row.emplace_back(value);
  return row;
}

std::vector<std::string> axes_columns(const std::vector<study::ComparedPoint>& points) {
  std::vector<std::string> columns;
  for (const auto& [key, value] : points.front().point->choices) columns.push_back(study::axis_title(key));
  return columns;
}

std::vector<Table> reported_tables(const std::vector<study::ReportedScore>& verdicts,
                                   const std::vector<study::ComparedPoint>& points, const config::Compare& compare,
                                   const std::string& machine) {
  std::vector<study::ReportedScore> figures, changes;
  for (const study::ReportedScore& verdict : verdicts)
    (verdict.figure->stands_alone() ? figures : changes).push_back(verdict);
  std::vector<Table> tables;
  if (!figures.empty()) tables.push_back(figures_table(figures, points, compare, machine));
  if (!changes.empty()) tables.push_back(reported_table(changes, points, compare, machine));
  return tables;
}

}  // namespace dculab::present
