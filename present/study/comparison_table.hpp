// Figures of served requests, measured beside simulated, as a table and as fields of JSON.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "present/output/field_json.hpp"

namespace dculab::present {

// A metric's value with its unit: "12.3 ms", "51.2".
[[nodiscard]] Cell figure_cell(const std::string& metric, double value);

// Metric by metric: simulated, measured, and how far the first is from the second.
[[nodiscard]] Table comparison_table(const std::map<std::string, double>& simulated,
                                     const std::map<std::string, double>& measured);
struct ComparedFigure {
  double simulated = 0, measured = 0;
};
[[nodiscard]] std::vector<std::pair<std::string, ComparedFigure>> compared_figures(
    const std::map<std::string, double>& simulated, const std::map<std::string, double>& measured);

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<present::ComparedFigure> {
  static constexpr std::string_view id = "compared_figure";
  static constexpr std::string_view doc = "A figure of served requests: a time in s, a rate in 1/s or a number.";
  static constexpr auto fields =
      std::tuple(field("simulated", "under the virtual clock", &present::ComparedFigure::simulated),
                 field("measured", "on this machine", &present::ComparedFigure::measured));
};

}  // namespace dculab
