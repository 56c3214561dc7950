// The arithmetic of a mixture of experts. Each token goes to some experts; what an expert gets is one row for each of
// these tokens. Rows are sorted by expert, and those of an expert by token. One struct per kernel; shapes beside each
// pointer, slowest dimension first; activations are F32 here, and of any format that a kernel's own arguments say.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/ops.hpp"

namespace dculab::kernels {

enum class RouterScoring : std::uint8_t { softmax, sigmoid };

// How a token's experts follow from the logits of the router.
// Sources: transformers, models/{mixtral,qwen3_moe,deepseek_v2,deepseek_v3}/modeling_*.py.
struct RouterRule {
  int num_experts = 0;
  int experts_per_token = 0;  // 1 to num_experts, and to the experts of the groups that a token gets
  RouterScoring scoring = RouterScoring::softmax;
  bool normalized = true;  // the weights of a token's experts are divided by their sum
  float scaling = 1.0F;    // of the weights, after that
  // Groups of num_experts / num_groups neighbours. A token's experts are of its best groups. A group is as good as its
  // best expert (DeepSeek-V2); with a correction bias, as the sum of its best two (DeepSeek-V3), or of the one it has.
  int num_groups = 1, groups_per_token = 1;

  [[nodiscard]] constexpr int group_size() const { return num_experts / num_groups; }
};

// The choices of a step: route_tokens writes them, products and combine_experts read them.
struct ExpertChoices {
  std::int32_t* experts = nullptr;      // [num_tokens, experts_per_token], best first
  float* weights = nullptr;             // [num_tokens, experts_per_token], likewise
  std::int32_t* choice_rows = nullptr;  // [num_tokens, experts_per_token]: the row of each choice
  std::int32_t* row_tokens = nullptr;   // [num_tokens * experts_per_token]: the token of each row
  std::int32_t* first_rows = nullptr;   // [num_experts + 1]: the first row of each expert; then how many rows there are
};

// Chooses by the scores plus the correction bias; weights are of the scores alone. Without a bias the order of the
// scores is that of the logits, and logits are compared, so that rounding makes no ties. Of equal ones the lower index
// comes first, of groups too. A token with a logit that is NaN or infinite counts as bad; its choices are some
// experts, all different.
struct RouteTokensArgs {
  const float* logits = nullptr;           // [num_tokens, num_experts]
  const float* correction_bias = nullptr;  // [num_experts], or null
  RouterRule rule;
  ExpertChoices choices;
  std::int32_t* bad_tokens = nullptr;  // [1]: how many there are
  int num_tokens = 0;
};

// y[r, :] = concatenation over i of x[token of row r, k] * weights[i][expert of row r]^T (+ bias). Weights of experts
// that have no row are not read.
struct ExpertMatmulArgs {
  const float* x = nullptr;                    // [num_tokens, k]; without row_tokens [rows, k], by row
  const std::int32_t* row_tokens = nullptr;    // [rows], or null
  const std::int32_t* first_rows = nullptr;    // [num_experts + 1]
  std::array<const WeightView*, 3> weights{};  // [num_experts] each: matrices [rows of the view, k]
  std::array<const WeightView*, 3> biases{};   // [num_experts] each: [rows of the view] F32 values; or null
  float* y = nullptr;                          // [rows, sum of the views' rows]
  int num_experts = 0, num_weights = 1, k = 0;
  ActivationMode activations = ActivationMode::exact;
};

// out[t, :] = (shared experts, where there are any) + sum over i of weights[t, i] * y[choice_rows[t, i], :], i in
// order. The shared part is what `out` holds before, times sigmoid(x[t, :] * shared_gate) where there is a gate.
struct CombineExpertsArgs {
  const float* y = nullptr;                   // [num_tokens * experts_per_token, width]: what the experts gave, by row
  const std::int32_t* choice_rows = nullptr;  // [num_tokens, experts_per_token]
  const float* weights = nullptr;             // [num_tokens, experts_per_token]
  float* out = nullptr;                       // [num_tokens, width]
  int num_tokens = 0, width = 0, experts_per_token = 0;
  bool has_shared = false;   // out holds what the shared experts gave
  const float* x = nullptr;  // [num_tokens, gate_width]: the input of the experts; with a gate
  WeightView shared_gate;    // [1, gate_width], or no data
  int gate_width = 0;
};

}  // namespace dculab::kernels
