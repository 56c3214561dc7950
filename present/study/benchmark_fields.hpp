// The fields of what `dculab validate` and `calibrate` answer for results of benchmark tools.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "present/output/field_json.hpp"
#include "present/study/calibration_fields.hpp"
#include "present/study/score_fields.hpp"
#include "study/benchmarks/benchmark_fit.hpp"

namespace dculab::present {

// A figure of a result.
struct ReportedBenchmarkFigure {
  const study::BenchmarkCase& benchmark;
  study::BenchmarkScore score;
};

struct ReportedBenchmarks {
  std::string machine, stack, model;
  std::vector<ReportedBenchmarkFigure> figures;
  study::Score summary;
  std::vector<std::string> notes;
};

// What was learned of the results.
struct ReportedBenchmarkFit {
  const study::BenchmarkFit& fit;
  std::vector<ReportedBenchmarkFigure> figures;  // as the fitted machine has them
  sim::ErrorSummary before, after;
  std::vector<std::string> files{};  // that were written
};

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<present::ReportedBenchmarkFigure> {
  using Row = present::ReportedBenchmarkFigure;
  static constexpr std::string_view id = "benchmark_figure";
  static constexpr std::string_view doc = "A figure that a benchmark tool measured, beside what is predicted.";
  static constexpr auto fields = std::tuple(
      field("file", "that has it", [](const Row& row) { return row.benchmark.file; }),
      field("run", "of several in the file", [](const Row& row) { return row.benchmark.result.label; }),
      field("tool", "that wrote it", [](const Row& row) { return config::name(row.benchmark.result.tool); }),
      field("metric", "ttft_mean, tpot_p99, duration, output_tokens_per_second ...",
            [](const Row& row) { return config::title(row.score.figure); }),
      field("unit", "of the figures", one_of("s", "1/s"),
            [](const Row& row) { return config::is_rate(row.score.figure.metric) ? "1/s" : "s"; }),
      field("measured", "by the tool", [](const Row& row) { return row.score.figure.value; }),
      field("predicted", "here", [](const Row& row) { return row.score.predicted; }),
      field("low", "of the 90 % interval", [](const Row& row) { return row.score.low; }),
      field("high", "of the 90 % interval", [](const Row& row) { return row.score.high; }),
      field("error", "of the time behind the figure: predicted / measured - 1, of a rate measured / predicted - 1",
            unit::share, [](const Row& row) { return row.score.error(); }));
};

template <>
struct FieldList<present::ReportedBenchmarks> {
  using Self = present::ReportedBenchmarks;
  static constexpr std::string_view id = "benchmark_validation";
  static constexpr std::string_view doc = "Results of benchmark tools beside predictions.";
  static constexpr std::string_view csv_rows = "figures";
  static constexpr auto fields =
      std::tuple(field("machine", "its name", &Self::machine), field("stack", "its name", &Self::stack),
                 field("model", "its name", &Self::model), field("figures", "in the files' order", &Self::figures),
                 field("summary", "their errors", &Self::summary), field("notes", "what was assumed", &Self::notes));
};

template <>
struct FieldList<present::ReportedBenchmarkFit> {
  using Self = present::ReportedBenchmarkFit;
  static constexpr std::string_view id = "benchmark_calibration";
  static constexpr std::string_view doc = "A machine and a stack fitted to results of benchmark tools.";
  static constexpr std::string_view csv_rows = "parameters";
  static constexpr auto fields = std::tuple(
      field("machine", "its name", [](const Self& reported) { return reported.fit.machine.name; }),
      field("stack", "its name", [](const Self& reported) { return reported.fit.machine.stack.name; }),
      field("parameters", "what was fitted", [](const Self& reported) { return reported.fit.parameters; }),
      field("figures", "as the fitted machine has them: no forecast", &Self::figures),
      field("before", "errors with the files as they were", &Self::before),
      field("after", "and after the fit", &Self::after),
      field("interval_factor", "a step lies between its prediction / factor and the prediction x factor, at 90 %",
            unit::ratio, [](const Self& reported) { return reported.fit.step_factor; }),
      field("files", "that were written", &Self::files));
};

}  // namespace dculab
