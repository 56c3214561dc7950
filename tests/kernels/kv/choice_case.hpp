// Decodes that choose among blocks of random bounds: small integers, so that sums are exact in F32, ties are many, and
// every kernel must choose the same.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "kernels/kv/critical_blocks.hpp"
#include "kernels/number_format.hpp"
#include "kernels/reference/cached_value.hpp"
#include "kernels/reference/kv/critical_blocks.hpp"
#include "tests/kernels/tensors.hpp"

namespace dculab::kernels {

// The lists of a choice, and memory for them.
struct ChoiceMemory {
  std::vector<std::int32_t> places, block_tables, context_lens, query_start_loc;
  std::vector<float> queries, upper_bounds;
  ChosenBlocks view;

  ChoiceMemory(int num_seqs, int num_kv_heads, int stride, int max_blocks_per_seq, int query_width)
      : places(static_cast<std::size_t>(num_seqs * num_kv_heads * stride), -1),
        block_tables(places),
        context_lens(static_cast<std::size_t>(num_seqs * num_kv_heads), -1),
        query_start_loc(context_lens.size() + 1, -1),
        queries(static_cast<std::size_t>(num_seqs * query_width), NAN),
        upper_bounds(static_cast<std::size_t>(num_seqs * num_kv_heads * max_blocks_per_seq), 0.0F),
        view{.stride = stride,
             .places = places.data(),
             .block_tables = block_tables.data(),
             .context_lens = context_lens.data(),
             .query_start_loc = query_start_loc.data(),
             .queries = queries.data()} {}
};

struct ChoiceShape {
  int num_kv_heads = 2, group_size = 4, head_dim = 64, block_size = 16;
  std::vector<int> contexts{400, 1, 33, 256};
  std::vector<int> budgets{7, 5, 3, 9};
  int recent_blocks = 1;
};

class ChoiceCase {
 public:
  explicit ChoiceCase(ChoiceShape shape) : shape_(std::move(shape)) {
    TensorSource source(17);
    for (const int context : shape_.contexts) longest_ = std::max(longest_, blocks_of(context));
    const int num_seqs = static_cast<int>(shape_.contexts.size());
    num_blocks_ = num_seqs * longest_;
    tables_.resize(static_cast<std::size_t>(num_blocks_));
    std::iota(tables_.begin(), tables_.end(), 0);
    std::shuffle(tables_.begin(), tables_.end(), source.engine());
    for (int row = 0; row < num_blocks_ * shape_.num_kv_heads; ++row) add_bounds(source);
    for (int seq = 0; seq < num_seqs; ++seq)
      for (int i = 0; i < q_stride(); ++i) q_.push_back(i < q_width() ? integer(source, 3) : NAN);
  }

  [[nodiscard]] const ChoiceShape& shape() const { return shape_; }
  [[nodiscard]] int num_seqs() const { return static_cast<int>(shape_.contexts.size()); }
  [[nodiscard]] int longest() const { return longest_; }
  [[nodiscard]] int q_width() const { return shape_.num_kv_heads * shape_.group_size * shape_.head_dim; }
  [[nodiscard]] int q_stride() const { return q_width() + 16; }
  [[nodiscard]] int stride() const { return longest_ + 3; }
  [[nodiscard]] const std::vector<float>& q() const { return q_; }
  [[nodiscard]] const std::vector<BlockBounds>& bounds() const { return bounds_; }
  [[nodiscard]] const std::vector<std::int32_t>& tables() const { return tables_; }
  [[nodiscard]] ChoiceMemory memory() const { return {num_seqs(), shape_.num_kv_heads, stride(), longest_, q_width()}; }
  [[nodiscard]] KvCacheView cache() const {
    KvCacheView cache;
    cache.num_blocks = num_blocks_, cache.num_kv_heads = shape_.num_kv_heads;
    cache.block_size = shape_.block_size, cache.head_dim = shape_.head_dim;
    return cache;
  }

  [[nodiscard]] ChooseCriticalBlocksArgs args(ChoiceMemory& memory) const {
    return {.q = q_.data(),
            .q_stride = q_stride(),
            .cache = cache(),
            .bounds = bounds_.data(),
            .block_tables = tables_.data(),
            .max_blocks_per_seq = longest_,
            .context_lens = shape_.contexts.data(),
            .budgets = shape_.budgets.data(),
            .num_seqs = num_seqs(),
            .num_heads = shape_.num_kv_heads * shape_.group_size,
            .recent_blocks = shape_.recent_blocks,
            .upper_bounds = memory.upper_bounds.data(),
            .chosen = memory.view};
  }

  [[nodiscard]] ChoiceMemory expected() const {
    ChoiceMemory memory = this->memory();
    reference::choose_critical_blocks(args(memory));
    return memory;
  }

 private:
  [[nodiscard]] int blocks_of(int tokens) const { return (tokens + shape_.block_size - 1) / shape_.block_size; }
  static float integer(TensorSource& source, int most) { return static_cast<float>(source.integer(-most, most)); }

  // Of a block and KV head.
  void add_bounds(TensorSource& source) {
    std::vector<float> minima, maxima;
    for (int d = 0; d < shape_.head_dim; ++d) {
      const float a = integer(source, 4), b = integer(source, 4);
      minima.push_back(std::min(a, b)), maxima.push_back(std::max(a, b));
    }
    for (const std::vector<float>* values : {&minima, &maxima})
      for (const float value : *values) bounds_.push_back(bf16_from_f32(value));
  }

  ChoiceShape shape_;
  int longest_ = 0, num_blocks_ = 0;
  std::vector<std::int32_t> tables_;
  std::vector<BlockBounds> bounds_;
  std::vector<float> q_;
};

// Sums of a key with a query, and of the bounds of its block with it.
struct Bounded {
  double product = 0, bound = 0;
};
inline Bounded bounded(const KvCacheView& cache, const float* q, std::int64_t slot, int kv_head,
                       const std::vector<float>& bounds) {
  const std::ptrdiff_t row = (slot / cache.block_size * cache.num_kv_heads + kv_head) * 2 * cache.head_dim;
  Bounded sums;
  for (int d = 0; d < cache.head_dim; ++d) {
    const auto index = reference::cache_index(cache, reference::KvTensor::k, slot, kv_head, d);
    sums.product += q[d] * double{static_cast<float>(reference::load_cached(cache, reference::KvTensor::k, index))};
    const double least = bounds[static_cast<std::size_t>(row + d)];
    const double most = bounds[static_cast<std::size_t>(row + cache.head_dim + d)];
    sums.bound += std::max(q[d] * least, q[d] * most);
  }
  return sums;
}

inline std::vector<ChoiceShape> choice_shapes() {
  return {{},
          {.num_kv_heads = 1, .group_size = 1, .head_dim = 8, .contexts = {200}, .budgets = {4}},
          {.num_kv_heads = 3, .group_size = 7, .head_dim = 80, .block_size = 1, .budgets = {100, 1, 8, 64}},
          {.num_kv_heads = 2, .group_size = 9, .head_dim = 32, .block_size = 4, .recent_blocks = 3},
          {.head_dim = 128, .block_size = 256, .contexts = {5000, 256, 257}, .budgets = {5, 9, 0}},
          {.group_size = 2, .head_dim = 256, .block_size = 2, .contexts = {1400, 900}, .budgets = {699, 2}}};
}

}  // namespace dculab::kernels
