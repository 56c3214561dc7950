// The fields of what `dculab validate` answers for points and traces.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "present/output/field_json.hpp"
#include "present/study/score_fields.hpp"
#include "present/values/input_sensitivity_report.hpp"
#include "present/values/machine_figures.hpp"
#include "study/validate/validation.hpp"

namespace dculab::present {

// By group, what points taught: factors of the figures of machines and stacks, by key, and of "time".
using LearnedFactors = std::vector<std::pair<std::string, std::vector<std::pair<std::string, double>>>>;
[[nodiscard]] LearnedFactors learned_factors(const sim::PointCalibration& calibration);

struct ReportedValidation {
  const study::Validation& validation;
  study::ScoreSummary summary;
  std::optional<ByMachine<MachineFacts>> machine_facts{};  // where something is priced
  std::optional<ByMachine<std::vector<ReportedInputSensitivity>>> input_sensitivity{};
};

// `--leave-one-out` of points.
struct ReportedLeaveOneOut {
  const study::Scores& left_out_rows;
  std::vector<std::pair<std::string, ReportedLeftOut>> groups;  // by study::left_out_groups()
  std::optional<std::vector<study::SourceEffect>> source_effects{};
};

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<present::ReportedValidation> {
  using Self = present::ReportedValidation;
  static constexpr std::string_view id = "validation";
  static constexpr std::string_view doc = "Predicted against measured, row by row.";
  static constexpr std::string_view csv_rows = "points";
  static constexpr auto fields = std::tuple(
      field("fitted", "where points were learned from: by group, factors of figures by key, and of the time",
            unit::ratio,
            [](const Self& reported) {
              const auto& calibration = reported.validation.calibration;
              return when(calibration != nullptr, [&] { return present::learned_factors(*calibration); });
            }),
      inlined([](const Self& reported) { return present::ReportedLeftOutRows{reported.validation.scores}; }),
      field(
          "points", "the rows",
          [](const Self& reported) -> const std::vector<study::ScoredRow>& { return reported.validation.scores.rows; }),
      field("summary", "their errors", &Self::summary),
      field("machine_facts", "figures of the machines, by name", &Self::machine_facts),
      field("leans_on", "assumed figures, by machine, the most important first", &Self::input_sensitivity));
};

template <>
struct FieldList<present::ReportedLeaveOneOut> {
  using Self = present::ReportedLeaveOneOut;
  static constexpr std::string_view id = "leave_one_out";
  static constexpr std::string_view doc =
      "The points of each machine, family, vendor, source, stack or program predicted "
      "from those of all others.";
  static constexpr std::string_view csv_rows = "leave_one_out.points";
  static constexpr auto fields = std::tuple(
      inlined([](const Self& reported) { return present::ReportedLeftOutRows{reported.left_out_rows}; }),
      field("leave_one_out", "by what is left out: machine, family, vendor, source, stack, software", &Self::groups),
      field("source_effects", "of sources, the largest change first", &Self::source_effects));
};

}  // namespace dculab
