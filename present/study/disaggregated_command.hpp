// How vLLM is started with pools that prefill and decode.
#pragma once

#include <string>
#include <vector>

#include "study/decide/disaggregated_recommendation.hpp"

namespace dculab::present {

// A line for a prefill replica and one for a decode replica, with vLLM's NixlConnector between. Empty where these
// figures are of another program, or the connector does not take the layouts.
[[nodiscard]] std::vector<std::string> disaggregated_commands(const study::DisaggregatedRecommendation& found);

// What must be known beside them, or why there are none.
[[nodiscard]] std::string disaggregated_note(const study::DisaggregatedRecommendation& found);

}  // namespace dculab::present
