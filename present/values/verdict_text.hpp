// What a choice among several comes to, in words and as JSON.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "present/output/report.hpp"
#include "study/decide/drawn_requests.hpp"
#include "study/decide/preference.hpp"

namespace dculab::present {

// "16, 32 and 64 cannot be told apart; 8 costs 10 to 18 %; 1 costs 40 %"
[[nodiscard]] std::string costs_text(std::span<const study::Evaluated> choices, const study::Verdict& verdict);

// choice, best, indistinguishable[] (from the best, it included), costs[] of the others: value, cost, interval;
// impossible[]
[[nodiscard]] Json costs_json(std::span<const study::Evaluated> choices, const study::Verdict& verdict);

// Which block size to take of those that served the requests: a line of the heading, and an entry of `block_sizes`.
void add_block_sizes(const std::string& machine, int kv_heads, const study::DrawnVerdict& blocks, Report& report);

// Block sizes of a sweep that a machine's stack does not take.
[[nodiscard]] std::string left_out_text(const std::string& machine, const std::vector<std::string>& block_sizes);

// "a, b and c"
[[nodiscard]] std::string listed(const std::vector<std::string>& values);

}  // namespace dculab::present
