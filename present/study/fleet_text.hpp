// Sentences about a load that a fleet serves.
#pragma once

#include <string>

#include "core/serving_metrics.hpp"
#include "study/decide/expected_service.hpp"

namespace dculab::present {

// " within TTFT 2 s, TPOT 60 ms"; empty without limits
[[nodiscard]] std::string level_text(const ServiceLevel& slo);

// "TTFT P90 0.4 s (0.3 s to 0.5 s), TPOT P90 40 ms (35 ms to 45 ms)"
[[nodiscard]] std::string expected_text(const study::ExpectedService& expected);

// "→ expect ...", then `of`, " at 5 requests/s", whether the requests are too few to rely on, and what a token costs.
[[nodiscard]] std::string expectation_line(const study::ExpectedService& expected, const std::string& of);

// "93 %", rounded so that what is less than `bound` does not read as the bound.
[[nodiscard]] std::string share_text(double share, double bound);

// What speaks against relying on it: too few requests are served, or in time, at the slow end of the interval; empty:
// nothing does.
[[nodiscard]] std::string doubt_text(const study::ExpectedService& expected, const ServiceLevel& slo);

// "→ 96 % (88 % to 99 %) of the requests meet the SLO", where there is one, and the doubt; empty where both are absent.
[[nodiscard]] std::string attainment_line(const study::ExpectedService& expected, const ServiceLevel& slo,
                                          const std::string& doubt);

}  // namespace dculab::present
