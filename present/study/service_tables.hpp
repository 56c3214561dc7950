// What the pools of a service spend their steps on, in tables and words.
#pragma once

#include <string>
#include <vector>

#include "present/output/report.hpp"
#include "study/evaluate/variant_cost.hpp"

namespace dculab::present {

// A row for each pool of the baseline and each variant that fits. Precondition: `costs` are of services, the baseline's
// first.
[[nodiscard]] Table pools_table(const std::vector<study::VariantCost>& costs, const config::Compare& compare,
                                const std::string& machine);

// The largest term in a step of the metric's pool, as "attention 41 %"; or "KV reads" or "KV transfer" where the pool
// waits for these. Of a variant without pools it is the largest share.
[[nodiscard]] std::string bound_of(const study::VariantCost& cost, const std::string& metric);

// What the closed form of a service takes for granted, in words.
[[nodiscard]] std::vector<std::string> service_assumptions(const config::Scenario& scenario);

}  // namespace dculab::present
