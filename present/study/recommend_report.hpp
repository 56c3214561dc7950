// The tables and the JSON of `dculab recommend`.
#pragma once

#include <string>
#include <vector>

#include "present/output/report.hpp"
#include "study/decide/serving_recommendation.hpp"

namespace dculab::present {

// Of each machine of the scenario, in their order.
[[nodiscard]] Report recommendation_report(const study::RecommendationQuestion& question,
                                           const std::vector<study::Recommendation>& found);

// "--block-size 16 --kv-cache-dtype fp8 --max-num-seqs 64 --max-num-batched-tokens 2048": what vLLM is started with.
// Empty where none of its kernels can be set so.
[[nodiscard]] std::string vllm_options(const study::Recommendation& recommendation);

}  // namespace dculab::present
