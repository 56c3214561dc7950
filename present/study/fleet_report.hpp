// How many devices a load takes and how they share the model, as a table and in sentences.
#pragma once

#include <string>
#include <vector>

#include "present/output/table_text.hpp"
#include "study/decide/serving_recommendation.hpp"

namespace dculab::present {

// "5 requests/s within TTFT 2 s, TPOT 60 ms: 2 replicas of TP 4, 8 devices in 1 server". Precondition: fleet.
[[nodiscard]] std::string fleet_text(const study::Recommendation& recommendation, const ServiceLevel& slo);

// Of a deployment that is given: " serves 0.6 of at most 1.2 requests/s (308 tokens/s) within the SLO", or does not;
// where no rate was asked for, " serves at most ...".
[[nodiscard]] std::string given_text(const study::Recommendation& recommendation, const ServiceLevel& slo);

// "TTFT P90 419 ms (200 ms to 11.1 s), TPOT P90 ..." Precondition: expected.
[[nodiscard]] std::string expected_text(const study::Recommendation& recommendation);

// What speaks against relying on it: too few requests are served, or in time, at the slow end; empty: nothing does.
// Precondition: expected.
[[nodiscard]] std::string doubt_text(const study::Recommendation& recommendation, const ServiceLevel& slo);

// Lines with arrows: those, the settings, what to expect, and how many requests meet the SLO. None where neither
// devices were offered nor a rate was asked for.
[[nodiscard]] std::vector<std::string> load_lines(const study::Recommendation& recommendation, const ServiceLevel& slo);

// The layouts that were tried. Precondition: recommendation.fleet.
[[nodiscard]] Table fleet_table(const study::Recommendation& recommendation);

}  // namespace dculab::present
