#include "present/study/served_report.hpp"

#include <array>
#include <map>
#include <set>
#include <utility>

#include "config/unit_text.hpp"
#include "present/output/field_csv.hpp"
#include "present/study/served_fields.hpp"
#include "present/study/validation_report.hpp"

namespace dculab::present {
namespace {

using config::kServedMetrics;
using config::ServedFigure;
using config::ServedMetric;
using study::ServedRow;

void add_metric_columns(Table& table) {
  for (int metric = 0; metric < kServedMetrics; ++metric)
    table.columns.emplace_back(config::name(static_cast<ServedMetric>(metric)));
}

// Adds a row for `name` where the last one is not its, and returns it.
[[nodiscard]] Row& row_of(Table& table, const std::string& name) {
  if (table.rows.empty() || table.rows.back().front() != name) {
    table.rows.emplace_back(1 + kServedMetrics, "");
    table.rows.back().front() = name;
  }
  return table.rows.back();
}

[[nodiscard]] Table score_table(const study::ServedRuns& served) {
  Table table;
  table.title = "Median |error| and, in brackets, of how many rows; error = predicted / measured - 1";
  table.columns = {"predicted by"};
  add_metric_columns(table);
  for (const study::ServedScore& score : served.scores)
    row_of(table, score.who)[1 + static_cast<std::size_t>(score.metric)] =
        percent(score.error.median_abs_error) + " (" + std::to_string(score.error.count) + ")";
  return table;
}

[[nodiscard]] Table common_table(const study::ServedRuns& served) {
  Table table;
  table.title = "Median |error| where a rival and dculab both predict: ours / theirs (rows)";
  table.columns = {"rival"};
  add_metric_columns(table);
  for (const study::CommonScore& score : served.common)
    row_of(table, score.rival)[1 + static_cast<std::size_t>(score.metric)] =
        percent(score.ours.median_abs_error) + " / " + percent(score.theirs.median_abs_error) + " (" +
        std::to_string(score.ours.count) + ")";
  return table;
}

[[nodiscard]] Table run_table(const study::ServedRuns& served) {
  Table table;
  table.title = "Our error of each run";
  table.columns = {"experiment", "stage", "model", "devices", "requests/s", "CPU offload"};
  add_metric_columns(table);
  const ServedFigure* last = nullptr;
  for (const auto& [figure, predicted] : served.rows) {
    if (last == nullptr || last->experiment != figure.experiment || last->stage != figure.stage) {
      std::string rates;
      for (const double rate : figure.load.requests_per_second) rates += (rates.empty() ? "" : "+") + number(rate);
      table.rows.push_back({figure.experiment, figure.stage, figure.load.model, std::to_string(figure.load.devices),
                            rates, stated_text(figure.cpu_offload)});
      table.rows.back().resize(6 + kServedMetrics, "");
    }
    last = &figure;
    const double error = predicted / figure.measured - 1;
    table.rows.back()[6 + static_cast<std::size_t>(figure.metric)] = signed_percent(error);
  }
  return table;
}

// A run that is left out has a row for each metric: a line for each reason is enough.
void add_unpriced(const study::ServedRuns& served, Report& report) {
  std::map<std::string, std::pair<int, std::set<std::string>>> by_reason;
  for (const study::LeftOutRow& row : served.unpriced) {
    auto& [rows, experiments] = by_reason[row.reason];
    ++rows;
    experiments.insert(row.id);
  }
  for (const auto& [reason, left_out] : by_reason) {
    std::string names;
    for (const std::string& experiment : left_out.second) names += (names.empty() ? "" : ", ") + experiment;
    report.heading.push_back("not predicted: " + std::to_string(left_out.first) + " rows of experiment " + names +
                             ": " + reason);
  }
}

[[nodiscard]] Table fit_table(const std::vector<study::FittedWithout>& fits) {
  Table table;
  table.title = "What the other experiments teach of each one's server, beside the stack's file";
  table.columns = {"without", "host.per_request", "sampler.per_step", "sampler.per_logit"};
  const auto factor = [](double value) { return number(value) + " x"; };
  for (const auto& [experiment, figures] : fits)
    table.rows.push_back({experiment, "+ " + config::short_text(figures.per_request), factor(figures.sampler_step),
                          factor(figures.sampler_logit)});
  return table;
}

void add_served(const study::ServedRuns& served, const study::ServedChoices& choices, Report& report) {
  report.heading.push_back("assumed: " + std::to_string(choices.prompts) + " different prompts take turns, and " +
                           (choices.prefix_tokens
                                ? "the first " + std::to_string(*choices.prefix_tokens) + " tokens of each repeat"
                                : std::string("repeat whole")) +
                           "; seed " + std::to_string(choices.seed));
  add_unpriced(served, report);
  report.tables.push_back(score_table(served));
  if (!served.common.empty()) report.tables.push_back(common_table(served));
  report.tables.push_back(run_table(served));
}

}  // namespace

const char* stated_text(config::Stated stated) {
  if (stated == config::Stated::unknown) return "unknown";
  return stated == config::Stated::yes ? "yes" : "no";
}

Report served_report(const study::ServedRuns& served, const study::ServedChoices& choices) {
  Report report = report_of(kValidateSchema, ReportedServed{served});
  add_served(served, choices, report);
  return report;
}

Report served_left_out_report(const study::ServedLeftOut& left_out, const study::ServedChoices& choices) {
  Report report = report_of(kValidateSchema, ReportedServed{left_out.runs, &left_out.fits});
  add_served(left_out.runs, choices, report);
  report.tables.push_back(fit_table(left_out.fits));
  return report;
}

}  // namespace dculab::present
