#include "present/study/benchmark_report.hpp"

#include <algorithm>
#include <utility>

#include "config/unit_text.hpp"
#include "present/output/field_csv.hpp"
#include "present/study/benchmark_fields.hpp"
#include "present/study/calibration_report.hpp"

namespace dculab::present {
namespace {

using study::BenchmarkCase;
using study::BenchmarkScore;

[[nodiscard]] std::string value_text(const config::BenchmarkFigure& figure, double value) {
  if (!config::is_rate(figure.metric)) return config::short_text(Seconds(value));
  return number(value) + (figure.metric == config::BenchmarkMetric::request_rate ? " /s" : " tokens/s");
}

// "at 4 requests/s, at most 16 at once"
[[nodiscard]] std::string arrival_text(const config::BenchmarkResult& result) {
  std::string text =
      result.requests_per_second ? "at " + exact_number(*result.requests_per_second) + " requests/s" : "";
  if (result.max_concurrency)
    text += (text.empty() ? "" : ", ") + ("at most " + std::to_string(*result.max_concurrency) + " at once");
  return text.empty() && result.requests > 1 ? "all at once" : text;
}

[[nodiscard]] std::string lengths_text(const LengthDistribution& lengths) {
  if (lengths.kind == LengthKind::fixed) return exact_number(lengths.center);
  return std::to_string(lengths.least) + " to " + std::to_string(lengths.most);
}

[[nodiscard]] std::string load_text(const BenchmarkCase& each) {
  const config::BenchmarkResult& result = each.result;
  std::string text(config::name(result.tool));
  if (result.tool == config::BenchmarkTool::llama_bench) return text;
  const RequestWorkload& workload = each.workload;
  text += ": " + counted(workload.requests, "request") + " of ";
  text += workload.recorded.empty() ? lengths_text(workload.prompt) + " + " + lengths_text(workload.output) + " tokens"
                                    : "the lengths that the file lists";
  const std::string arrival = arrival_text(result);
  return text + (arrival.empty() ? "" : " ") + arrival;
}

[[nodiscard]] Table figure_table(const BenchmarkCase& each, const std::vector<BenchmarkScore>& scores) {
  Table table;
  table.title = each.title() + ": " + load_text(each);
  table.columns = {"figure", "measured", "predicted", "90 % interval", "error"};
  for (const BenchmarkScore& score : scores) {
    const config::BenchmarkFigure& figure = score.figure;
    table.rows.push_back({config::title(figure), value_text(figure, figure.value), value_text(figure, score.predicted),
                          value_text(figure, score.low) + " .. " + value_text(figure, score.high),
                          signed_percent(score.error())});
  }
  for (const std::string& note : each.notes) table.notes.push_back(note);
  return table;
}

[[nodiscard]] study::Score summary_of(const std::vector<ReportedBenchmarkFigure>& figures) {
  std::vector<double> errors;
  double inside = 0;
  for (const ReportedBenchmarkFigure& figure : figures) {
    errors.push_back(figure.score.error());
    inside += figure.score.inside() ? 1 : 0;
  }
  return {sim::summarize_errors(std::span<const double>(errors)), inside / static_cast<double>(figures.size())};
}

[[nodiscard]] std::string error_text(const sim::ErrorSummary& error) {
  return "median |error| " + percent(error.median_abs_error) + ", P90 " + percent(error.p90_abs_error) + ", bias " +
         signed_percent(error.bias);
}

[[nodiscard]] std::string implausible_text(const sim::FittedParameter& parameter) {
  return parameter.key + " is fitted to " + parameter_text(parameter.key, parameter.value) + ", where " +
         parameter_text(parameter.key, parameter.prior) +
         " was expected: check that the machine, its devices and the lengths of the requests are the measurement's";
}

}  // namespace

Report benchmarks_report(const std::vector<BenchmarkCase>& cases) {
  const sim::SimulatedServer& server = cases.front().server;
  ReportedBenchmarks reported{.machine = server.machine.name,
                              .stack = server.machine.stack.name,
                              .model = server.model.name,
                              .figures = {},
                              .summary = {},
                              .notes = {}};
  std::vector<Table> tables;
  for (const BenchmarkCase& each : cases) {
    const std::vector<BenchmarkScore> scores = study::score_benchmark(each);
    tables.push_back(figure_table(each, scores));
    for (const BenchmarkScore& score : scores) reported.figures.push_back({each, score});
    for (const std::string& note : each.notes)
      if (std::ranges::find(reported.notes, note) == reported.notes.end()) reported.notes.push_back(note);
  }
  reported.summary = summary_of(reported.figures);
  Report report = report_of("dculab/validate/1", reported);
  report.heading.push_back(reported.model + " on " + reported.machine + " with " + reported.stack);
  report.heading.push_back(counted(std::ssize(reported.figures), "figure") + ": " + error_text(reported.summary.error) +
                           "; " + percent(reported.summary.inside) + " inside their 90 % interval");
  report.tables = std::move(tables);
  return report;
}

Report benchmark_fit_report(const std::vector<BenchmarkCase>& cases, const study::BenchmarkFit& fit,
                            const std::string& folder, const std::vector<std::string>& files) {
  ReportedBenchmarkFit reported{.fit = fit,
                                .figures = {},
                                .before = sim::summarize_errors(std::span<const double>(fit.errors_before)),
                                .after = {},
                                .files = files};
  std::vector<Table> tables;
  for (std::size_t each = 0; each < cases.size(); ++each) {
    for (const BenchmarkScore& score : fit.scores[each]) reported.figures.push_back({cases[each], score});
    tables.push_back(figure_table(cases[each], fit.scores[each]));
  }
  reported.after = summary_of(reported.figures).error;
  Report report = report_of("dculab/calibrate/1", reported);
  report.heading.push_back(cases.front().server.model.name + " on " + fit.machine.name + " with " +
                           fit.machine.stack.name + ": " + counted(std::ssize(cases), "result"));
  report.heading.push_back("before the fit: " + error_text(reported.before));
  report.heading.push_back("after the fit: " + error_text(reported.after));
  for (const sim::FittedParameter& each : fit.parameters)
    if (study::is_implausible(each)) add_warnings(report, {implausible_text(each)});
  report.tables.push_back(parameter_table(fit.parameters));
  report.tables.insert(report.tables.end(), tables.begin(), tables.end());
  if (!files.empty())
    report.tables.back().notes.push_back("wrote " + counted(std::ssize(files), "file") + " below " + folder +
                                         "; every command reads them with DCULAB_DATA=" + folder +
                                         " in the environment");
  return report;
}

}  // namespace dculab::present
