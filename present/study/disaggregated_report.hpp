// The tables and the JSON of `dculab recommend --decode-machine`.
#pragma once

#include <vector>

#include "present/output/report.hpp"
#include "study/decide/disaggregated_recommendation.hpp"

namespace dculab::present {

// Of each machine of the scenario, in their order.
[[nodiscard]] Report disaggregated_report(const study::RecommendationQuestion& question,
                                          const std::vector<study::DisaggregatedRecommendation>& found);

}  // namespace dculab::present
