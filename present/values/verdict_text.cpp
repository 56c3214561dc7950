#include "present/values/verdict_text.hpp"

#include <algorithm>
#include <charconv>
#include <vector>

#include "study/decide/attention_difference.hpp"

namespace dculab::present {
namespace {

// Numbers by their size; what is no number, such as "unsplit", behind them.
[[nodiscard]] double size_of(const std::string& value) {
  double size = 0;
  const auto end = std::from_chars(value.data(), value.data() + value.size(), size).ptr;
  return end == value.data() + value.size() ? size : 1e300;
}

// In the order in which they are told: those that are tied by their size, others by their cost.
[[nodiscard]] std::vector<std::size_t> reported(std::span<const study::Evaluated> choices,
                                                const study::Verdict& verdict, bool tied) {
  std::vector<std::size_t> order;
  for (std::size_t index = 0; index < choices.size(); ++index)
    if (verdict.costs[index] && verdict.is_tied(index) == tied) order.push_back(index);
  std::ranges::stable_sort(
      order, {}, [&](std::size_t index) { return tied ? size_of(choices[index].value) : verdict.costs[index]->value; });
  return order;
}

// "10 to 18 %", "40 %" where both ends are the same in two digits, "up to 16 %" where it may be next to nothing
[[nodiscard]] std::string cost_text(const study::Cost& cost) {
  constexpr double kNextToNothing = 0.005;
  if (cost.low < kNextToNothing) return "up to " + percent(cost.high, 2);
  const std::string low = number(100 * cost.low, 2), high = number(100 * cost.high, 2);
  return low == high ? percent(cost.value, 2) : low + " to " + high + " %";
}

}  // namespace

std::string listed(const std::vector<std::string>& values) {
  std::string text;
  for (std::size_t index = 0; index < values.size(); ++index)
    text += (index == 0 ? "" : index + 1 == values.size() ? " and " : ", ") + values[index];
  return text;
}

std::string left_out_text(const std::string& machine, const std::vector<std::string>& block_sizes) {
  return machine + ": left out block size" + (block_sizes.size() > 1 ? "s " : " ") + listed(block_sizes) +
         ", which the stack's kernels do not take";
}

std::string costs_text(std::span<const study::Evaluated> choices, const study::Verdict& verdict) {
  std::vector<std::string> tied, impossible;
  for (const std::size_t index : reported(choices, verdict, true))
    if (index != verdict.chosen) tied.push_back(choices[index].value);
  std::string text = tied.empty() ? choices[verdict.chosen].value + " is the fastest"
                                  : listed(tied) + " cannot be told apart from " + choices[verdict.chosen].value;
  for (const std::size_t index : reported(choices, verdict, false))
    text += "; " + choices[index].value + " costs " + cost_text(*verdict.costs[index]);
  for (std::size_t index = 0; index < choices.size(); ++index)
    if (!verdict.costs[index]) impossible.push_back(choices[index].value);
  if (!impossible.empty())
    text += "; " + listed(impossible) + (impossible.size() > 1 ? " do not fit" : " does not fit");
  return text;
}

ReportedCosts reported_costs(std::span<const study::Evaluated> choices, const study::Verdict& verdict) {
  ReportedCosts costs{.choice = choices[verdict.chosen].value, .best = choices[verdict.best].value};
  for (const std::size_t index : reported(choices, verdict, true)) costs.tied.push_back(choices[index].value);
  for (const std::size_t index : reported(choices, verdict, false))
    costs.others.push_back({choices[index].value, *verdict.costs[index]});
  for (std::size_t index = 0; index < choices.size(); ++index)
    if (!verdict.costs[index]) costs.impossible.push_back(choices[index].value);
  return costs;
}

ReportedBlockSizes tell_block_sizes(const std::string& machine, int kv_heads, const study::DrawnVerdict& blocks,
                                    std::vector<std::string>& heading) {
  const auto& [evaluated, verdict] = blocks;
  heading.push_back("→ " + machine + ", " + study::heads_text(kv_heads) + ": block size " +
                    evaluated[verdict.chosen].value + "; " + costs_text(evaluated, verdict));
  return {reported_costs(evaluated, verdict), machine};
}

}  // namespace dculab::present
