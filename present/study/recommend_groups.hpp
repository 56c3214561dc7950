// What other group sizes would bring to a recommended server, and what is known of their accuracy.
#pragma once

#include "present/output/report.hpp"
#include "study/decide/serving_recommendation.hpp"

namespace dculab::present {

[[nodiscard]] Table group_table(const study::Recommendation& result);

}  // namespace dculab::present
