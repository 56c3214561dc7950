// What a choice among several comes to, in words and as JSON.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "present/output/field_json.hpp"
#include "study/decide/drawn_requests.hpp"
#include "study/decide/preference.hpp"

namespace dculab::present {

// "16, 32 and 64 cannot be told apart; 8 costs 10 to 18 %; 1 costs 40 %"
[[nodiscard]] std::string costs_text(std::span<const study::Evaluated> choices, const study::Verdict& verdict);

// The same for programs.
struct ReportedCost {
  std::string value;
  study::Cost cost;
};
struct ReportedCosts {
  std::string choice, best;
  std::vector<std::string> tied{};     // with the best, it included
  std::vector<ReportedCost> others{};  // that can be had
  std::vector<std::string> impossible{};
};
[[nodiscard]] ReportedCosts reported_costs(std::span<const study::Evaluated> choices, const study::Verdict& verdict);

// Of a machine.
struct ReportedBlockSizes {
  ReportedCosts costs;
  std::string machine;
};

// Which block size to take of those that served the requests: adds a line to a heading.
[[nodiscard]] ReportedBlockSizes tell_block_sizes(const std::string& machine, int kv_heads,
                                                  const study::DrawnVerdict& blocks, std::vector<std::string>& heading);

// Block sizes of a sweep that a machine's stack does not take.
[[nodiscard]] std::string left_out_text(const std::string& machine, const std::vector<std::string>& block_sizes);

// "a, b and c"
[[nodiscard]] std::string listed(const std::vector<std::string>& values);

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<present::ReportedCost> {
  using Self = present::ReportedCost;
  static constexpr std::string_view id = "cost";
  static constexpr std::string_view doc = "What it costs to take a value that is not the best.";
  static constexpr auto fields =
      std::tuple(field("value", "the value", &Self::value),
                 field("cost", "figure of the best over that of this value, minus 1", unit::share,
                       [](const Self& reported) { return reported.cost.value; }),
                 field("interval", "90 %", unit::share,
                       [](const Self& reported) { return interval(reported.cost.low, reported.cost.high); }));
};

template <>
struct FieldList<present::ReportedCosts> {
  using Self = present::ReportedCosts;
  static constexpr std::string_view id = "costs";
  static constexpr std::string_view doc = "Which of several values to take.";
  static constexpr auto fields = std::tuple(
      field("choice", "the value to take", &Self::choice), field("best", "the value with the best figure", &Self::best),
      field("indistinguishable", "values that cannot be told apart from the best, it included", &Self::tied),
      field("costs", "of all other values that can be had", &Self::others),
      field("impossible", "values that cannot be had: they do not fit, say", &Self::impossible));
};

template <>
struct FieldList<present::ReportedBlockSizes> {
  using Self = present::ReportedBlockSizes;
  static constexpr std::string_view id = "block_sizes";
  static constexpr std::string_view doc =
      "Which block size a machine should use, decided over several draws of requests.";
  static constexpr auto fields =
      std::tuple(inlined(&Self::costs), field("machine", "the machine's name", &Self::machine));
};

}  // namespace dculab
