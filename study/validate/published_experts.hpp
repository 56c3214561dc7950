// Published kernels of mixtures of experts: the products of the experts that tokens chose, as programs time them.
#pragma once

#include "config/points_file.hpp"
#include "sim/study/recipe.hpp"

namespace dculab::study {

// How many experts there are and how many a token goes to, which stand in the notes: "E=8 top-k=2".
struct PublishedExperts {
  int num_experts = 0, num_experts_per_tok = 0;
};

// Throws InputError where the notes have neither.
[[nodiscard]] PublishedExperts published_experts(const std::string& notes);

// The sorting of rows, both products, the activation between them and the weighted sum, for m tokens: what vLLM's
// fused_experts launches for experts that are chosen already. Throws InputError.
[[nodiscard]] sim::Recipe fused_moe_recipe(const config::PublishedPoint& point);

}  // namespace dculab::study
