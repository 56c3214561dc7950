#include "engine/executors/cpu_draft_heads.hpp"

#include <algorithm>
#include <cmath>

namespace dculab::engine {
namespace {

// state += SiLU(projected)
void add_silu(std::span<const float> projected, std::span<float> state) {
  for (std::size_t i = 0; i < state.size(); ++i) state[i] += projected[i] / (1.0F + std::exp(-projected[i]));
}

}  // namespace

// Few are wanted: each value is held against the last of those found so far, which it seldom beats.
void largest_indices(std::span<const float> values, std::span<TokenId> wanted) {
  std::size_t found = 0;
  for (std::size_t index = 0; index < values.size(); ++index) {
    if (found == wanted.size() && !(values[index] > values[static_cast<std::size_t>(wanted.back())])) continue;
    if (found < wanted.size()) ++found;
    std::size_t place = found - 1;
    for (; place > 0 && values[index] > values[static_cast<std::size_t>(wanted[place - 1])]; --place)
      wanted[place] = wanted[place - 1];
    wanted[place] = static_cast<TokenId>(index);
  }
}

void CpuDraftHeads::multiply(const kernels::WeightView& matrix, const float* bias, const std::vector<float>& x,
                             std::vector<float>& y, int rows) {
  y.resize(static_cast<std::size_t>(rows) * static_cast<std::size_t>(matrix.rows));
  kernels::MatmulArgs args;
  args.x = x.data();
  args.weights[0] = matrix;
  args.biases[0] = bias;
  args.y = y.data();
  args.m = rows;
  args.k = weights_.hidden_size;
  kernels::cpu::matmul(threads_, workspace_, args);
}

void CpuDraftHeads::run(const MedusaHead& head, std::span<const float> hidden, int rows) {
  state_.assign(hidden.begin(), hidden.end());
  for (std::size_t layer = 0; layer < head.layers.size(); ++layer) {
    multiply(head.layers[layer], f32_values(head.biases[layer]), state_, projected_, rows);
    add_silu(projected_, state_);
  }
  multiply(head.lm_head, nullptr, state_, logits_, rows);
}

std::span<const TokenId> CpuDraftHeads::guess(std::span<const float> hidden, int width) {
  const auto rows = hidden.size() / static_cast<std::size_t>(weights_.hidden_size);
  const auto columns = static_cast<std::size_t>(weights_.num_rows()), heads = weights_.heads.size(),
             guesses = static_cast<std::size_t>(width);
  guesses_.resize(rows * heads * guesses);
  for (std::size_t head = 0; head < heads; ++head) {
    run(weights_.heads[head], hidden, static_cast<int>(rows));
    for (std::size_t row = 0; row < rows; ++row) {
      const std::span found = std::span(guesses_).subspan((row * heads + head) * guesses, guesses);
      largest_indices(std::span(logits_).subspan(row * columns, columns), found);
      for (TokenId& token : found) token = weights_.token_of(token);
    }
  }
  return guesses_;
}

}  // namespace dculab::engine
