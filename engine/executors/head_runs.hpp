// Attention kernels serve KV heads with equally many query heads each: the parts of a layer whose groups differ.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/kv/kv_layouts.hpp"
#include "kernels/ops.hpp"
#include "model/layer_kind.hpp"

namespace dculab::engine {

// Neighbouring KV heads with equally many query heads.
struct HeadRun {
  int first_kv_head = 0, num_kv_heads = 0;
  int first_query_head = 0, num_query_heads = 0;
};

// Of all heads of a layer; none where all groups are equal.
[[nodiscard]] inline std::vector<HeadRun> head_runs(const LayerKind& kind) {
  std::vector<HeadRun> runs;
  if (!kind.has_kv_heads()) return runs;
  int kv_head = 0, query_head = 0, last_size = 0;
  for (const int size : kind.gqa().group_sizes) {
    if (size != last_size) runs.push_back({.first_kv_head = kv_head, .first_query_head = query_head});
    runs.back().num_kv_heads += 1, runs.back().num_query_heads += size;
    kv_head += 1, query_head += size, last_size = size;
  }
  return runs;
}

// The attention of a run, from that of the whole layer. Not of formats that quantize tokens together.
[[nodiscard]] inline kernels::PagedAttentionArgs of_run(kernels::PagedAttentionArgs args, const HeadRun& run) {
  kernels::KvCacheView& cache = args.cache;
  const std::ptrdiff_t rows = std::ptrdiff_t{run.first_kv_head} * cache.block_size;
  const auto moved = [&](void* values, int row) {
    return static_cast<std::byte*>(values) + rows * row * bits(cache.dtype) / 8;
  };
  args.out_stride = args.out_row();
  args.q += std::ptrdiff_t{run.first_query_head} * cache.head_dim;
  args.out += std::ptrdiff_t{run.first_query_head} * cache.value_width();
  if (args.alibi_slopes != nullptr) args.alibi_slopes += run.first_query_head;
  args.num_heads = run.num_query_heads;
  cache.block_heads = cache.heads_in_block();
  cache.num_kv_heads = run.num_kv_heads;
  cache.k = moved(cache.k, cache.head_dim), cache.v = moved(cache.v, cache.value_stride());
  if (const KvLayout& layout = kv_layout(cache.dtype); layout.of_heads != nullptr)
    cache.extras = layout.of_heads(cache, run.first_kv_head);
  return args;
}

}  // namespace dculab::engine
