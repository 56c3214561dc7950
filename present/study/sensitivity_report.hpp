// How a report says which figure of a machine would change its answer.
#pragma once

#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "present/output/field_json.hpp"
#include "sim/study/sensitivity.hpp"

namespace dculab::present {

// A figure of a machine, and how the answer follows it.
struct ReportedSensitivity {
  sim::Sensitivity figure;
  std::string kind;  // how the figure came about: "spec", "prior" ...
};

// Adds the table, returns what it shows. `choice`: the answer on the machine as it is; `within`: the largest factor by
// which figures were changed; `metric`: what Answer::figure is.
[[nodiscard]] std::vector<ReportedSensitivity> add_sensitivity(const sim::Machine& machine, const std::string& choice,
                                                               const std::vector<sim::Sensitivity>& figures,
                                                               double within, const std::string& metric,
                                                               Report& report);

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<sim::Flip> {
  static constexpr std::string_view id = "flip";
  static constexpr std::string_view doc = "The smallest change of a figure at which the answer is another one.";
  static constexpr auto fields =
      std::tuple(field("factor", "of the figure", unit::ratio, &sim::Flip::factor),
                 field("value", "of the figure then: in s, B, FLOP/s, B/s, Hz or a number", &sim::Flip::value),
                 field("choice", "the answer then", &sim::Flip::choice));
};

template <>
struct FieldList<present::ReportedSensitivity> {
  using Self = present::ReportedSensitivity;
  static constexpr std::string_view id = "sensitivity";
  static constexpr std::string_view doc = "A figure of a machine, and how the answer follows it.";
  static constexpr auto fields = std::tuple(
      field("key", "of the figure: memory.L2.bandwidth", [](const Self& reported) { return reported.figure.key; }),
      field("value", "in s, B, FLOP/s, B/s, Hz or a number",
            [](const Self& reported) { return reported.figure.value; }),
      field("kind", "how the figure came about: spec, measured, inferred, fitted, assumed, prior", &Self::kind),
      field("elasticity", "relative change of the answer's metric over that of the figure, the answer staying the same",
            unit::ratio, [](const Self& reported) { return reported.figure.elasticity; }),
      field("down", "the largest smaller value with another answer; null: none within the range",
            [](const Self& reported) { return or_null(reported.figure.down); }),
      field("up", "the smallest larger value with another answer; null: none within the range",
            [](const Self& reported) { return or_null(reported.figure.up); }));
};

}  // namespace dculab
