// Every effective value of a machine, a stack, a model or a scenario, and where it came from.
#pragma once

#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "present/values/machine_figures.hpp"
#include "present/values/measure_text.hpp"
#include "study/scenario/shown.hpp"

namespace dculab::present {

// A value, as it is written and as a number where it is one.
struct ShownValue {
  MachineFigure figure;
  std::optional<Measure> measure{};
};

struct ReportedValues {
  std::vector<ShownValue> values;
};

// Of a scenario: what the file says, then the defaults that it leaves in force.
[[nodiscard]] Report shown_report(const study::Shown& shown);

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<present::ShownValue> {
  using Shown = present::ShownValue;
  static constexpr std::string_view id = "value";
  static constexpr std::string_view doc = "A value, and where it came from.";
  static constexpr auto fields = std::tuple(
      inlined(&Shown::figure),
      field("number", "the value, where it is one number",
            [](const Shown& shown) { return when(shown.measure.has_value(), [&] { return shown.measure->value; }); }),
      field("unit", "of `number`: B, s, FLOP, Hz, B/s or FLOP/s; of others there is none", [](const Shown& shown) {
        const bool has_unit = shown.measure && shown.measure->dimension;
        return when(has_unit, [&] { return present::core_unit(*shown.measure->dimension); });
      }));
};

template <>
struct FieldList<present::ReportedValues> {
  using Self = present::ReportedValues;
  static constexpr std::string_view id = "shown";
  static constexpr std::string_view doc = "Every effective value of a machine, a stack, a model or a scenario.";
  static constexpr std::string_view csv_rows = "values";
  static constexpr auto fields = std::tuple(field("values", "in the order of the file", &Self::values));
};

}  // namespace dculab
