// Every effective value of a machine, a stack, a model or a scenario, and where it came from.
#pragma once

#include <string_view>
#include <tuple>
#include <vector>

#include "present/values/machine_figures.hpp"
#include "study/scenario/shown.hpp"

namespace dculab::present {

struct ToldValues {
  const std::vector<MachineFigure>& values;
};

// Of a scenario: what the file says, then the defaults that it leaves in force.
[[nodiscard]] Report shown_report(const study::Shown& shown);

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<present::ToldValues> {
  using Told = present::ToldValues;
  static constexpr std::string_view id = "shown";
  static constexpr std::string_view doc = "Every effective value of a machine, a stack, a model or a scenario.";
  static constexpr std::string_view csv_rows = "values";
  static constexpr auto fields =
      std::tuple(field("values", "in the order of the file",
                       [](const Told& told) -> const std::vector<present::MachineFigure>& { return told.values; }));
};

}  // namespace dculab
