// The tables and the JSON of `dculab recommend`.
#pragma once

#include <vector>

#include "present/output/report.hpp"
#include "study/decide/serving_recommendation.hpp"

namespace dculab::present {

// Of each machine of the scenario, in their order.
[[nodiscard]] Report recommendation_report(const study::RecommendationQuestion& question,
                                           const std::vector<study::Recommendation>& found);

}  // namespace dculab::present
