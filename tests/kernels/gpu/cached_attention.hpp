// Calls of PagedSequences on a device: the cache, what else a call has, and attention of both phases.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/batch.hpp"
#include "kernels/number_format.hpp"
#include "kernels/reference/reference_kernels.hpp"
#include "lower/dculab_gpu/paged_attention_tiling.hpp"
#include "tests/kernels/gpu/device_under_test.hpp"
#include "tests/kernels/paged_sequences.hpp"

namespace dculab::kernels::gpu {

// A cache whose tokens lie in rows, as one on the host.
struct CacheOnDevice {
  CacheOnDevice(Device& device, const KvCacheView& host) : CacheOnDevice(device, host, scales_of(host)) {}

  KvCacheView view;
  DeviceTensor k, v, k_scales, v_scales;  // scales: int8

 private:
  CacheOnDevice(Device& device, const KvCacheView& host, const Int8KvScales& scales)
      : view(host),
        k(device, host.k, bytes_of(host.dtype, rows(host) * static_cast<std::size_t>(host.head_dim))),
        v(device, host.v, bytes_of(host.dtype, rows(host) * static_cast<std::size_t>(host.head_dim))),
        k_scales(device, scales.k, scale_bytes(host)),
        v_scales(device, scales.v, scale_bytes(host)) {
    view.k = k.as(), view.v = v.as();
    if (host.dtype == Dtype::int8) view.extras = Int8KvScales{.k = k_scales.as<float>(), .v = v_scales.as<float>()};
  }
  static std::size_t rows(const KvCacheView& view) {
    return static_cast<std::size_t>(view.num_blocks) * view.num_kv_heads * view.block_size;
  }
  static std::size_t scale_bytes(const KvCacheView& view) {
    return view.dtype == Dtype::int8 ? rows(view) * sizeof(float) : 0;
  }
  static Int8KvScales scales_of(const KvCacheView& view) {
    return view.dtype == Dtype::int8 ? view.extras.as<Int8KvScales>() : Int8KvScales{};
  }
};

// What a call has besides its cache, and its longest context, its most new tokens of a sequence and all of them.
struct CallOnDevice {
  template <typename Queries>
  CallOnDevice(Device& device, const PagedAttentionArgs& args, const Queries& queries)
      : q(device, queries),
        tables(device, args.block_tables, words(args.num_seqs * args.max_blocks_per_seq)),
        starts(device, args.query_start_loc, words(args.num_seqs + 1)),
        contexts(device, args.context_lens, words(args.num_seqs)),
        slopes(device, args.alibi_slopes, args.alibi_slopes == nullptr ? 0 : words(args.num_heads)),
        num_tokens(args.query_start_loc[args.num_seqs]) {
    for (int seq = 0; seq < args.num_seqs; ++seq) {
      longest_context = std::max(longest_context, args.context_lens[seq]);
      longest_query = std::max(longest_query, args.query_start_loc[seq + 1] - args.query_start_loc[seq]);
    }
  }
  static std::size_t words(int count) { return sizeof(std::int32_t) * static_cast<std::size_t>(count); }

  DeviceTensor q, tables, starts, contexts, slopes;
  int num_tokens = 0, longest_context = 0, longest_query = 0;
};

// How a call is run. Decode: the cut.
struct CachedAttention {
  Phase phase = Phase::decode;
  Dtype query = Dtype::f16, out = Dtype::f32;
  int partition_tokens = 0, heads_per_workgroup = 0;
};

// Attention of a call over `cache`, which lies on the device.
inline std::vector<float> attend(Device& device, const CachedAttention& how, const PagedAttentionArgs& args,
                                 const KvCacheView& cache, const std::vector<std::byte>& queries) {
  const CallOnDevice call(device, args, queries);
  const int values = call.num_tokens * args.num_heads * cache.head_dim;
  const DeviceTensor out(device, bytes_of(how.out, static_cast<std::size_t>(values)));
  const float* const alibi = args.alibi_slopes == nullptr ? nullptr : call.slopes.as<float>();
  if (how.phase == Phase::prefill) {
    device.prefill_attention({.q = {call.q.as(), how.query},
                              .q_stride = args.q_stride,
                              .cache = cache,
                              .block_tables = call.tables.as<std::int32_t>(),
                              .max_blocks_per_seq = args.max_blocks_per_seq,
                              .query_start_loc = call.starts.as<std::int32_t>(),
                              .context_lens = call.contexts.as<std::int32_t>(),
                              .max_query_len = call.longest_query,
                              .out = {out.as(), how.out},
                              .num_seqs = args.num_seqs,
                              .num_heads = args.num_heads,
                              .scale = args.scale,
                              .score_cap = ScoreCap(args.logit_soft_cap),
                              .alibi_slopes = alibi,
                              .sliding_window = args.sliding_window});
    return out.read_numbers(how.out);
  }
  const std::int64_t partials = paged_attention_workspace(call.num_tokens, args.num_heads, cache.head_dim,
                                                          call.longest_context, how.partition_tokens);
  const DeviceTensor workspace(device, sizeof(float) * static_cast<std::size_t>(partials));
  device.paged_attention({.q = {call.q.as(), how.query},
                          .q_stride = args.q_stride,
                          .cache = cache,
                          .block_tables = call.tables.as<std::int32_t>(),
                          .max_blocks_per_seq = args.max_blocks_per_seq,
                          .context_lens = call.contexts.as<std::int32_t>(),
                          .max_context_len = call.longest_context,
                          .out = {out.as(), how.out},
                          .num_seqs = args.num_seqs,
                          .num_heads = args.num_heads,
                          .scale = args.scale,
                          .score_cap = ScoreCap(args.logit_soft_cap),
                          .alibi_slopes = alibi,
                          .sliding_window = args.sliding_window,
                          .heads_per_workgroup = how.heads_per_workgroup,
                          .partition_tokens = how.partition_tokens,
                          .workspace = workspace.as<float>(),
                          .queries = call.longest_query > 1 ? DecodeQueries{.start_loc = call.starts.as<std::int32_t>(),
                                                                            .num_tokens = call.num_tokens,
                                                                            .max_tokens_per_seq = call.longest_query}
                                                            : DecodeQueries()});
  return out.read_numbers(how.out);
}

// Queries as halves hold them, NaN between the tokens: as the reference is given them, and stored in a format.
struct HalfQueries {
  HalfQueries(const PagedAttentionArgs& args, Dtype dtype)
      : values(args.q, args.q + args.query_start_loc[args.num_seqs] * args.q_stride),
        bytes(bytes_of(dtype, values.size())) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!std::isnan(values[i])) values[i] = f32_from_f16(f16_from_f32(values[i]));
      reference::store_value(bytes.data(), dtype, i, values[i]);
    }
  }
  std::vector<float> values;
  std::vector<std::byte> bytes;
};

struct CachedCase {
  AttentionShape shape;
  int block_size = 16, partition_tokens = 0, heads_per_workgroup = 0;
  Dtype query = Dtype::f16;
};

// Attention over what `on_device(device, args)` makes of a call's cache of codes, beside the reference's.
//
// Scores have the error of f32 arithmetic, 2^-18 for those below 2^6. In prefill halves hold what codes stand for, and
// the softmax's weights: a rounding of 2^-11 of each, which products of size 1 add up like a random walk, four times
// that at the worst. An error e of the scores changes weights by 2 e, the result by 2 e max|v|; max|v| is below 6.
template <typename OnDevice>
void check_attention(const CachedCase& test, Phase phase, const std::vector<NewTokens>& calls, OnDevice&& on_device) {
  CAPTURE(name(test.shape.dtype), test.shape.num_heads, test.shape.num_kv_heads, test.shape.head_dim, test.block_size,
          test.shape.residual_tokens, name(test.query));
  std::vector<int> lengths;
  for (const NewTokens& call : calls) lengths.push_back(call.context);
  PagedSequences sequences(test.shape, lengths);
  sequences.page(test.block_size);
  const bool in_halves = phase == Phase::prefill && test.query == Dtype::f16;
  const double score_error = 0x1p-18 + (in_halves ? 4 * 0x1p-11 / std::sqrt(3.0) : 0.0);
  const double tolerance = 6 * (2 * score_error + (in_halves ? 2 * 0x1p-11 : 0.0));
  const CachedAttention how{.phase = phase,
                            .query = test.query,
                            .partition_tokens = test.partition_tokens,
                            .heads_per_workgroup = test.heads_per_workgroup};
  sequences.run(calls, [&](PagedAttentionArgs args) {
    const HalfQueries queries(args, test.query);
    args.q = queries.values.data();
    reference::paged_attention(args);
    const std::vector<float> expected(args.out, args.out + std::ptrdiff_t{args.query_start_loc[args.num_seqs]} *
                                                               args.num_heads * args.cache.head_dim);
    for_each_device([&](Device& device) {
      const auto cache = on_device(device, args);
      CHECK(largest_difference(attend(device, how, args, cache.view, queries.bytes), expected) <= tolerance);
    });
  });
}

}  // namespace dculab::kernels::gpu
