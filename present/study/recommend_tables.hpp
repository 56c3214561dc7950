// What other group sizes, token budgets and drafts would bring to a recommended server.
#pragma once

#include "present/output/report.hpp"
#include "study/decide/serving_recommendation.hpp"

namespace dculab::present {

// Of every number of KV heads, with what is known of its accuracy.
[[nodiscard]] Table group_table(const study::Recommendation& result);

// Of every max_num_batched_tokens.
[[nodiscard]] Table tokens_table(const study::Recommendation& result);

// Precondition: the scenario has a speculative_config.
[[nodiscard]] Table drafts_table(const study::Recommendation& result);

}  // namespace dculab::present
