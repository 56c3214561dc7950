// The fields of what `dculab calibrate` answers.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "present/output/field_json.hpp"
#include "present/study/calibration_report.hpp"
#include "present/study/held_out_report.hpp"
#include "present/study/score_fields.hpp"
#include "present/study/validation_fields.hpp"
#include "study/calibrate/refused_steps.hpp"

namespace dculab::present {

// On traces.
struct ReportedTraceCalibration {
  std::string machine;
  const study::BelievedSteps& believed;
  const study::TraceCalibration& calibration;
  std::optional<std::vector<std::pair<std::string, sim::ErrorSummary>>> held_out_ops{};
  std::optional<std::vector<BlockSizeRegret>> regret{};
};

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<sim::FittedParameter> {
  using Parameter = sim::FittedParameter;
  static constexpr std::string_view id = "fitted_parameter";
  static constexpr std::string_view doc = "A figure that was fitted: in s, or a share of a peak.";
  static constexpr auto fields = std::tuple(
      field("key", "of the figure: sustained.dram_bandwidth", &Parameter::key),
      field("prior", "before the fit", &Parameter::prior), field("value", "after it", &Parameter::value),
      field("log_sigma",
            "one standard deviation of its logarithm after the fit; of stack.host.per_request, which may be 0, "
            "in units of 5 ms",
            &Parameter::log_sigma),
      field("low", "one standard deviation below the value", &Parameter::low),
      field("high", "one standard deviation above it", &Parameter::high),
      field("confounded_with", "the parameter that makes up for it best, in good part", &Parameter::confounded_with),
      field("identified", "of the prior's variance at least half is gone", &study::is_identified));
};

template <>
struct FieldList<present::BlockSizeRegret> {
  using Self = present::BlockSizeRegret;
  static constexpr std::string_view id = "block_size_regret";
  static constexpr std::string_view doc =
      "What it costs, in measured time, to choose the block size by the predictions.";
  static constexpr auto fields =
      std::tuple(field("num_key_value_heads", "of a layer", unit::count, &Self::kv_heads),
                 field("predicted_best_block_size", "by the predictions", unit::tokens,
                       [](const Self& reported) { return reported.regret.predicted_best.block_size; }),
                 field("measured_best_block_size", "by the measurements", unit::tokens,
                       [](const Self& reported) { return reported.regret.measured_best.block_size; }),
                 field("regret", "measured time of the first over that of the second, minus 1", unit::share,
                       [](const Self& reported) { return reported.regret.regret; }),
                 field("worst_single_batch", "the largest when each batch is decided on its own", unit::share,
                       [](const Self& reported) { return reported.regret.worst_single; }));
};

template <>
struct FieldList<present::ReportedTraceCalibration> {
  using Self = present::ReportedTraceCalibration;
  static constexpr std::string_view id = "trace_calibration";
  static constexpr std::string_view doc = "A machine fitted to traces of its steps.";
  static constexpr std::string_view csv_rows = "parameters";
  static constexpr auto fields = std::tuple(
      field("machine", "the one that the fit started from", &Self::machine),
      field("refused", "steps that cannot be true, and why",
            [](const Self& reported) {
              std::vector<std::string> lines;
              for (const study::LeftOutRow& row : reported.believed.refused) lines.push_back(study::refusal_line(row));
              return lines;
            }),
      field("parameters", "what was fitted", [](const Self& reported) { return reported.calibration.fit.parameters; }),
      field("fitted", "errors of the steps that were fitted",
            [](const Self& reported) { return reported.calibration.fit.error; }),
      field("held_out", "errors of the steps that were not",
            [](const Self& reported) {
              const auto& score = reported.calibration.held_out;
              return when(score.has_value(), [&] { return score->error; });
            }),
      field("held_out_ops", "the same by op, where the steps have durations of ops", &Self::held_out_ops),
      field("regret", "where several block sizes were measured on the same batches", &Self::regret),
      field("interval_factor", "a measurement lies between a prediction / factor and the prediction x factor, at 90 %",
            unit::ratio, [](const Self& reported) { return reported.calibration.interval_factor(); }));
};

template <>
struct FieldList<study::LearnedIntervals> {
  using Learned = study::LearnedIntervals;
  static constexpr std::string_view id = "learned_intervals";
  static constexpr std::string_view doc =
      "How well predictions of a stack hold on a machine: a measurement lies between a "
      "prediction / factor and the prediction x factor, at 90 %.";

  [[nodiscard]] static std::vector<DataKey> kinds() {
    std::vector<DataKey> keys;
    for (const auto& [word, kind] : sim::kPriceKinds)
      keys.push_back({std::string(word), std::string(unit::ratio), "factor of predictions of this kind"});
    return keys;
  }
  [[nodiscard]] static std::vector<std::pair<std::string_view, double>> factors(const Learned& learned) {
    std::vector<std::pair<std::string_view, double>> factors;
    for (const auto& [word, kind] : sim::kPriceKinds) factors.emplace_back(word, learned.intervals.factors.at(kind));
    return factors;
  }

  static constexpr auto fields =
      std::tuple(field("machine", "its name", &Learned::machine), field("stack", "its name", &Learned::stack),
                 field("rows", "measured there, of this stack", unit::count,
                       [](const Learned& learned) { return learned.intervals.rows; }),
                 keyed(&kinds, &factors));
};

template <>
struct FieldList<present::PointsCalibration> {
  using Self = present::PointsCalibration;
  static constexpr std::string_view id = "points_calibration";
  static constexpr std::string_view doc = "Machines and stacks fitted to published points.";
  static constexpr std::string_view csv_rows = "intervals";

  [[nodiscard]] static std::vector<std::pair<std::string, study::Score>> scores(
      const Self& reported, study::Score present::FittedError::*which) {
    std::vector<std::pair<std::string, study::Score>> scores;
    for (const present::FittedError& error : reported.errors) scores.emplace_back(error.kind, error.*which);
    return scores;
  }

  static constexpr auto fields = std::tuple(
      inlined([](const Self& reported) { return present::ReportedLeftOutRows{reported.left_out}; }),
      field("fitted", "by group, factors of figures by key, and of the time", unit::ratio,
            [](const Self& reported) { return present::learned_factors(reported.learned); }),
      field("before", "errors of the points with the machines' files as they were, by kind; no forecast",
            [](const Self& reported) { return scores(reported, &present::FittedError::before); }),
      field("after", "and after the fit",
            [](const Self& reported) { return scores(reported, &present::FittedError::after); }),
      field("intervals", "of each machine and stack",
            [](const Self& reported) { return when(!reported.intervals.empty(), [&] { return reported.intervals; }); }),
      field("files", "that were written",
            [](const Self& reported) { return when(!reported.files.empty(), [&] { return reported.files; }); }));
};

}  // namespace dculab
