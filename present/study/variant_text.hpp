// What a variant costs, in words; its fields in JSON are variant_fields.hpp.
#pragma once

#include <string>
#include <vector>

#include "present/output/report.hpp"
#include "study/evaluate/variant_cost.hpp"

namespace dculab::present {

// The largest share of the time: "matmul, compute 64 %".
[[nodiscard]] std::string largest_share(const study::VariantCost& cost);

// A figure of a metric in words: "12.3 s", "1.7 requests/s".
[[nodiscard]] std::string figure_text(const std::string& metric, double value);

// What the closed form of a run of requests takes for granted, in words.
[[nodiscard]] std::vector<std::string> run_assumptions(const config::Scenario& scenario);

}  // namespace dculab::present
