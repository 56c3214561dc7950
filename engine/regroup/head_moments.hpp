// Second moments of the heads of a layer on calibration text: what says how well one head can stand for several.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/model_shape.hpp"

namespace dculab::engine {

// Sums over tokens. K and V of all heads lie in a row, so that two heads can be held against each other value by value.
struct HeadMoments {
  explicit HeadMoments(const ModelShape& shape);

  // Q, K and V of some tokens: [tokens, query_width + 2 * kv_width].
  void add_qkv(std::span<const float> qkv);

  int query_width, kv_width, head_dim;
  std::int64_t num_tokens = 0;
  std::vector<double> q;      // [num_attention_heads, head_dim, head_dim]: sum of q q^T of each head
  std::vector<double> k, v;   // [kv_width, kv_width]: sums of k k^T and v v^T
  std::vector<double> k_sum;  // [kv_width]
};

}  // namespace dculab::engine
