// A model small enough for the GPU kernels on the host, steps of it, and how far logits lie apart.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "kernels/gpu/open_device.hpp"
#include "tests/engine/support/stepper.hpp"
#include "tests/support/catch.hpp"

namespace dculab::engine {

inline std::shared_ptr<kernels::gpu::Device> host_gpu(int wave_size = 64) {
  return kernels::gpu::open_host_device({.wave_size = wave_size});
}

// Two layers of 8 query heads of 32 values, the smallest that the kernels serve.
inline ModelShape small_model(int num_kv_heads, Dtype dtype = Dtype::f32) {
  ModelShape shape;
  shape.name = "small";
  shape.hidden_size = 64;
  shape.kinds[0].mlp.intermediate_size = 96;
  shape.layers.assign(2, 0);
  shape.kinds[0].gqa().heads = {8, num_kv_heads, 32};
  shape.vocab_size = 96;
  shape.max_position_embeddings = 256;
  shape.dtype = dtype;
  return shape;
}

inline std::vector<TokenId> tokens_from(TokenId first, int count) {
  std::vector<TokenId> tokens(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) tokens[static_cast<std::size_t>(i)] = (first + 7 * i) % 96;
  return tokens;
}

// Prompts of 21, 1 and 8 tokens in one step, and two decode steps of all three.
inline std::vector<Logits> ragged_steps(Stepper& stepper) {
  std::vector<Feed> feeds{{0, Phase::prefill, tokens_from(3, 21)},
                          {1, Phase::prefill, tokens_from(5, 1)},
                          {2, Phase::prefill, tokens_from(11, 8)}};
  std::vector<Logits> all = stepper.step(feeds);
  for (const TokenId next : {17, 40}) {
    for (Feed& feed : feeds) feed = {feed.sequence, Phase::decode, {next + static_cast<TokenId>(feed.sequence)}};
    const std::vector<Logits> rows = stepper.step(feeds);
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

// The largest difference over all logits, as a share of the largest logit; infinite where one is not a number.
inline double relative_difference(const std::vector<Logits>& actual, const std::vector<Logits>& expected) {
  REQUIRE(actual.size() == expected.size());
  double difference = 0, largest = 0;
  for (std::size_t row = 0; row < actual.size(); ++row) {
    REQUIRE(actual[row].size() == expected[row].size());
    for (std::size_t i = 0; i < actual[row].size(); ++i) {
      if (!std::isfinite(actual[row][i])) return INFINITY;
      difference = std::max<double>(difference, std::fabs(actual[row][i] - expected[row][i]));
      largest = std::max<double>(largest, std::fabs(expected[row][i]));
    }
  }
  return difference / largest;
}

}  // namespace dculab::engine
