#include "kernels/reference/kv/critical_blocks.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

#include "kernels/number_format.hpp"
#include "kernels/reference/cached_value.hpp"
#include "kernels/reference/reference_kernels.hpp"

namespace dculab::kernels::reference {
namespace {

// The first of the minima of a block and KV head; its maxima follow.
std::ptrdiff_t first_bound(const KvCacheView& cache, std::int32_t block, int kv_head) {
  return (std::ptrdiff_t{block} * cache.num_kv_heads + kv_head) * 2 * cache.head_dim;
}

// As attention reads it.
float load_key(const KvCacheView& cache, std::int64_t slot, int kv_head, int d) {
  return static_cast<float>(load_cached(cache, KvTensor::k, cache_index(cache, KvTensor::k, slot, kv_head, d)));
}

void take_key(const UpdateBlockBoundsArgs& args, const std::int32_t* table, int token, int kv_head) {
  const KvCacheView& cache = args.cache;
  const std::int64_t slot = slot_of(cache, table, token);
  const bool is_first = token % cache.block_size == 0;
  BlockBounds* minima = args.bounds + first_bound(cache, table[token / cache.block_size], kv_head);
  BlockBounds* maxima = minima + cache.head_dim;
  for (int d = 0; d < cache.head_dim; ++d) {
    const float key = load_key(cache, slot, kv_head, d);
    minima[d] = bf16_at_most(is_first ? key : std::min(key, f32_from_bf16(minima[d])));
    maxima[d] = bf16_at_least(is_first ? key : std::max(key, f32_from_bf16(maxima[d])));
  }
}

double upper_bound(const KvCacheView& cache, const float* q, const BlockBounds* minima) {
  double sum = 0;
  for (int d = 0; d < cache.head_dim; ++d)
    sum += std::max(double{q[d]} * f32_from_bf16(minima[d]), double{q[d]} * f32_from_bf16(minima[cache.head_dim + d]));
  return sum;
}

// [num_blocks] the largest of the group's for each block of a sequence.
std::vector<double> upper_bounds(const ChooseCriticalBlocksArgs& args, int seq, int kv_head, int num_blocks) {
  const KvCacheView& cache = args.cache;
  const int group_size = args.num_heads / cache.num_kv_heads;
  const std::int32_t* table = args.block_tables + std::ptrdiff_t{seq} * args.max_blocks_per_seq;
  std::vector<double> bounds(static_cast<std::size_t>(num_blocks), -INFINITY);
  for (int place = 0; place < num_blocks; ++place)
    for (int head = kv_head * group_size; head < (kv_head + 1) * group_size; ++head) {
      const float* q = args.q + seq * args.q_stride + std::ptrdiff_t{head} * cache.head_dim;
      double& bound = bounds[static_cast<std::size_t>(place)];
      bound = std::max(bound, upper_bound(cache, q, args.bounds + first_bound(cache, table[place], kv_head)));
    }
  return bounds;
}

// The chosen places, ascending.
std::vector<int> choose(const ChooseCriticalBlocksArgs& args, int seq, const std::vector<double>& bounds) {
  const int num_blocks = static_cast<int>(bounds.size());
  std::vector<int> places(bounds.size());
  std::iota(places.begin(), places.end(), 0);
  const auto is_kept = [&](int place) { return place == 0 || place >= num_blocks - args.recent_blocks; };
  std::stable_sort(places.begin(), places.end(), [&](int a, int b) {
    if (is_kept(a) != is_kept(b)) return is_kept(a);
    return !is_kept(a) && bounds[static_cast<std::size_t>(a)] > bounds[static_cast<std::size_t>(b)];
  });
  places.resize(static_cast<std::size_t>(chosen_blocks(num_blocks, args.budgets[seq], args.recent_blocks)));
  std::sort(places.begin(), places.end());
  return places;
}

void choose_of_head(const ChooseCriticalBlocksArgs& args, int seq, int kv_head) {
  const KvCacheView& cache = args.cache;
  const ChosenBlocks& chosen = args.chosen;
  const int context = args.context_lens[seq], num_blocks = (context + cache.block_size - 1) / cache.block_size;
  const std::ptrdiff_t list = std::ptrdiff_t{seq} * cache.num_kv_heads + kv_head;
  const std::vector<double> bounds = upper_bounds(args, seq, kv_head, num_blocks);
  std::transform(bounds.begin(), bounds.end(), args.upper_bounds + list * args.max_blocks_per_seq,
                 [](double bound) { return static_cast<float>(bound); });
  const std::vector<int> places = choose(args, seq, bounds);
  const std::int32_t* table = args.block_tables + std::ptrdiff_t{seq} * args.max_blocks_per_seq;
  for (std::size_t i = 0; i < places.size(); ++i) {
    chosen.places[list * chosen.stride + static_cast<std::ptrdiff_t>(i)] = places[i];
    chosen.block_tables[list * chosen.stride + static_cast<std::ptrdiff_t>(i)] =
        table[places[i]] * cache.num_kv_heads + kv_head;
  }
  const int blocks_left_out = num_blocks - static_cast<int>(places.size());
  chosen.context_lens[list] = context - blocks_left_out * cache.block_size;
}

}  // namespace

void update_block_bounds(const UpdateBlockBoundsArgs& args) {
  for (int seq = 0; seq < args.num_seqs; ++seq) {
    const int context = args.context_lens[seq], tokens = args.query_start_loc[seq + 1] - args.query_start_loc[seq];
    const std::int32_t* table = args.block_tables + std::ptrdiff_t{seq} * args.max_blocks_per_seq;
    for (int token = context - tokens; token < context; ++token)
      for (int head = 0; head < args.cache.num_kv_heads; ++head) take_key(args, table, token, head);
  }
}

void choose_critical_blocks(const ChooseCriticalBlocksArgs& args) {
  const int kv_heads = args.cache.num_kv_heads, width = args.num_heads * args.cache.head_dim;
  for (int seq = 0; seq < args.num_seqs; ++seq) {
    for (int head = 0; head < kv_heads; ++head) choose_of_head(args, seq, head);
    if (args.chosen.queries != nullptr)
      std::copy_n(args.q + seq * args.q_stride, width,
                  static_cast<float*>(args.chosen.queries) + std::ptrdiff_t{seq} * width);
  }
  if (args.chosen.query_start_loc != nullptr)
    std::iota(args.chosen.query_start_loc, args.chosen.query_start_loc + args.num_seqs * kv_heads + 1, 0);
}

// A KV head's part of a block is a block of its own, with one KV head.
void critical_attention(const PagedAttentionArgs& args, const ChosenBlocks& chosen) {
  const int kv_heads = args.cache.num_kv_heads, group_size = args.num_heads / kv_heads;
  const std::int32_t one_token[] = {0, 1};
  PagedAttentionArgs of_head = args;
  of_head.cache.num_kv_heads = 1, of_head.cache.num_blocks *= kv_heads;
  of_head.num_heads = group_size, of_head.num_seqs = 1, of_head.query_start_loc = one_token;
  for (int seq = 0; seq < args.num_seqs; ++seq)
    for (int kv_head = 0; kv_head < kv_heads; ++kv_head) {
      const std::ptrdiff_t list = std::ptrdiff_t{seq} * kv_heads + kv_head;
      const std::int32_t* table = args.block_tables + std::ptrdiff_t{seq} * args.max_blocks_per_seq;
      std::vector<std::int32_t> blocks;
      for (int i = 0; i * args.cache.block_size < chosen.context_lens[list]; ++i)
        blocks.push_back(table[chosen.places[list * chosen.stride + i]] * kv_heads + kv_head);
      of_head.block_tables = blocks.data(), of_head.max_blocks_per_seq = static_cast<int>(blocks.size());
      of_head.context_lens = chosen.context_lens + list;
      of_head.q = args.q + seq * args.q_stride + std::ptrdiff_t{kv_head} * group_size * args.cache.head_dim;
      of_head.out = args.out + seq * args.out_row() + std::ptrdiff_t{kv_head} * group_size * args.cache.value_width();
      paged_attention(of_head);
    }
}

}  // namespace dculab::kernels::reference
