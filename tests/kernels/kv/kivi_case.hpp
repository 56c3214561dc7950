// Sequences whose tokens a KIVI cache is given in chunks, and numbers that formats round in different ways.
#pragma once

#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "kernels/number_format.hpp"
#include "tests/kernels/paged_sequences.hpp"

namespace dculab::kernels {

// Numbers of all sizes that formats round in different ways, among them zeros and, for FP8, what is not finite.
inline std::vector<float> awkward_values(TensorSource& source, std::size_t count, Dtype dtype) {
  std::vector<float> values = source.floats(count);
  const bool fp8 = dtype == Dtype::fp8_e4m3 || dtype == Dtype::fp8_e5m2;
  for (std::size_t i = 0; i < count; ++i) {
    if (i % 3 == 1) values[i] = std::ldexp(values[i], source.integer(-24, fp8 ? 18 : 8));
    if (i % 7 == 2) values[i] = std::ldexp(static_cast<float>(source.integer(-64, 64)), -9);  // ties
    if (i % 97 == 5) values[i] = -0.0F;
    if (fp8 && i % 89 == 7) values[i] = i % 2 == 0 ? INFINITY : -NAN;
  }
  return values;
}

// Two sequences in a kivi cache, given to it in chunks.
struct KiviCase {
  static constexpr int kKvHeads = 2, kHeadDim = 64, kStride = kKvHeads * kHeadDim + 8;
  int block_size;
  int residual_tokens;
  CacheMemory cache;
  std::vector<std::uint16_t> residual_k, residual_v;
  std::vector<std::vector<float>> k, v;          // [sequence][200, stride]
  std::vector<std::int32_t> tables, rows{2, 0};  // blocks in descending order

  KiviCase(Dtype dtype, int block, int tokens)
      : block_size(block),
        residual_tokens(tokens),
        cache(dtype, 2 * blocks(), kKvHeads, block, kHeadDim),
        residual_k(static_cast<std::size_t>(3 * kKvHeads * tokens * kHeadDim), 0xFFFF),
        residual_v(residual_k),
        tables(static_cast<std::size_t>(2 * blocks())) {
    std::iota(tables.rbegin(), tables.rend(), 0);
    TensorSource source(5);
    for (std::vector<std::vector<float>>* tensor : {&k, &v})
      for (int sequence = 0; sequence < 2; ++sequence) {
        tensor->push_back(awkward_values(source, 200 * kStride, dtype));
        for (float& value : tensor->back()) value = f32_from_f16(f16_from_f32(value));
        std::fill_n(tensor->back().begin() + 40 * kStride, kStride, 0.25F);  // a token whose values are all alike
        for (int token = 64; token < 96; ++token)                            // a channel whose tokens are all alike
          tensor->back()[static_cast<std::size_t>(token * kStride + 3)] = -1.5F;
        tensor->back()[130 * kStride + 5] = INFINITY;  // whose units' codes would not be numbers
        tensor->back()[150 * kStride + 70] = -INFINITY;
      }
  }
  [[nodiscard]] int blocks() const { return (200 + block_size - 1) / block_size; }

  // body(args) with `count` more tokens of both sequences, which have `computed`.
  template <typename Body>
  void advance(int computed, int count, Body&& body) {
    std::vector<float> new_k, new_v;
    for (const auto& [from, to] : {std::pair{&k, &new_k}, {&v, &new_v}})
      for (const std::vector<float>& values : *from)
        to->insert(to->end(), values.begin() + computed * kStride, values.begin() + (computed + count) * kStride);
    const std::int32_t starts[] = {0, count, 2 * count}, contexts[] = {computed + count, computed + count};
    KvCacheView view = cache.view;
    view.extras = KiviExtras{{residual_k.data(), residual_v.data(), residual_tokens},
                             {new_k.data(), new_v.data(), kStride, rows.data()}};
    body(KiviArgs{.cache = view,
                  .block_tables = tables.data(),
                  .max_blocks_per_seq = blocks(),
                  .query_start_loc = starts,
                  .context_lens = contexts,
                  .num_seqs = 2});
  }
};

}  // namespace dculab::kernels
