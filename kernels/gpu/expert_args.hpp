// What the GPU kernels of a mixture of experts are given: see args.hpp, and kernels/expert_ops.hpp for what they do.
#pragma once

#include <cstdint>

#include "kernels/expert_ops.hpp"
#include "kernels/gpu/args.hpp"
#include "lower/dculab_gpu/expert_plan.hpp"

namespace dculab::kernels::gpu {

// The rows that a workgroup of a product takes: those of one expert from `first_row` on, as many as a tile has and the
// expert still has. expert < 0: none.
struct ExpertTile {
  std::int32_t expert = -1;
  std::int32_t first_row = 0;
};

// The tiles of a step's rows, in the order of experts.
struct ExpertTiles {
  ExpertTile* tiles = nullptr;  // [count]
  int count = 0;                // the most that there can be: plan_expert_matmul()
  int rows = 0;                 // of a tile
};

// Two kernels: the choices of each token, then the rows of each expert. Up to kMostExperts, kMostExpertGroups and
// kMostExpertsPerToken.
struct RouteTokens {
  Input logits{};                          // [num_tokens, num_experts]
  const float* correction_bias = nullptr;  // [num_experts], or null
  RouterRule rule{};
  ExpertChoices choices{};
  ExpertTiles tiles{};
  std::int32_t* is_bad = nullptr;      // [num_tokens]: 1 for a token with a logit that is NaN or infinite, else 0
  std::int32_t* bad_tokens = nullptr;  // [1]: their number is added
  int num_tokens = 0;
};

// Rows of a product: those of the experts, which choices sort.
struct ExpertRows {
  const std::int32_t* row_tokens =
      nullptr;  // [rows]: the row of x that each row is; null: they are rows of x themselves
  const std::int32_t* first_rows = nullptr;  // [num_experts + 1]
  ExpertTiles tiles{};
  int num_experts = 0;
};

// y[r, n] = x[token of row r, k] * w[expert of row r, n, k]^T + bias[expert of row r, n]. Formats as Matmul. No weights
// of an expert without a row are loaded.
struct ExpertMatmul {
  Input x{};   // [x_rows, k]
  Input w{};   // [num_experts, n, k]
  Output y{};  // [rows, n]
  ExpertRows rows{};
  int x_rows = 0, n = 0, k = 0;
  const float* bias = nullptr;  // [num_experts, n], or null
  WeightScales scales{};        // of the first expert; the others' follow
};

// The same with GPTQ weights. weight, x_perm: of the first expert; the others' follow, each array on its own.
struct ExpertGptqMatmul {
  Input x{};  // [x_rows, in_features]
  GptqWeightView weight{};
  const std::int32_t* x_perm = nullptr;  // [num_experts, in_features], or null
  Output y{};                            // [rows, out_features]
  ExpertRows rows{};
  int x_rows = 0;
  const float* bias = nullptr;  // [num_experts, out_features], or null
};

// out[t] = sum over i of weights[t, i] * y[choice_rows[t, i]], i in order, + sigmoid(shared_gate[t]) * shared[t] where
// there are shared experts; without a gate the factor is 1. `out` may be `shared`.
struct CombineExperts {
  Input y{};                                  // [num_tokens * experts_per_token, width]
  const std::int32_t* choice_rows = nullptr;  // [num_tokens, experts_per_token]
  const float* weights = nullptr;             // [num_tokens, experts_per_token]
  Input shared{};                             // [num_tokens, width], data may be null
  Input shared_gate{};                        // [num_tokens], before the sigmoid; data may be null
  Output out{};                               // [num_tokens, width]
  int num_tokens = 0, width = 0, experts_per_token = 0;
};

}  // namespace dculab::kernels::gpu
