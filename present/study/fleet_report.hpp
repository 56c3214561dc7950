// How many devices a load takes and how they share the model, as a table and in sentences.
#pragma once

#include <string>
#include <vector>

#include "present/output/table_text.hpp"
#include "study/decide/serving_recommendation.hpp"

namespace dculab::present {

// "→ 5 requests/s within TTFT 2 s, TPOT 60 ms: 2 replicas of TP 4, 8 devices in 1 server", "→ block size 16 ...", what
// to expect, and how many requests meet the SLO. None where no devices were offered.
[[nodiscard]] std::vector<std::string> fleet_lines(const study::Recommendation& recommendation,
                                                   const ServiceLevel& slo);

// The layouts that were tried. Precondition: recommendation.fleet.
[[nodiscard]] Table fleet_table(const study::Recommendation& recommendation);

}  // namespace dculab::present
