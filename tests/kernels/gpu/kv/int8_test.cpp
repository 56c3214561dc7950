// An int8 KV cache on the GPU: the reference's codes and scales, and attention over them.
#include <algorithm>
#include <bit>
#include <cmath>
#include <tuple>

#include "kernels/gpu/numbers.hpp"
#include "kernels/number_format.hpp"
#include "lower/dculab_gpu/paged_attention_tiling.hpp"
#include "tests/kernels/gpu/device_under_test.hpp"
#include "tests/kernels/paged_sequences.hpp"

namespace dculab::kernels::gpu {
namespace {

// A cache on a device, as one on the host.
struct Int8Cache {
  Int8Cache(Device& device, const KvCacheView& host)
      : view(host),
        k(device, host.k, rows(host) * std::size_t(host.head_dim)),
        v(device, host.v, rows(host) * std::size_t(host.head_dim)),
        k_scales(device, host.extras.as<Int8KvScales>().k, rows(host) * sizeof(float)),
        v_scales(device, host.extras.as<Int8KvScales>().v, rows(host) * sizeof(float)) {
    view.k = k.as(), view.v = v.as();
    view.extras = Int8KvScales{.k = k_scales.as<float>(), .v = v_scales.as<float>()};
  }
  static std::size_t rows(const KvCacheView& view) {
    return static_cast<std::size_t>(view.num_blocks) * view.num_kv_heads * view.block_size;
  }

  KvCacheView view;
  DeviceTensor k, v, k_scales, v_scales;
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
    return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
  });
}

struct Int8Case {
  AttentionShape shape;
  int block_size = 16, partition_tokens = 0;
  Dtype query = Dtype::f16;
};

constexpr AttentionShape shape_of(int heads, int kv_heads, int head_dim) {
  return {.num_heads = heads, .num_kv_heads = kv_heads, .head_dim = head_dim, .dtype = Dtype::int8};
}

// Queries that halves hold, in a format.
std::vector<std::byte> stored_queries(const PagedAttentionArgs& args, Dtype dtype, std::vector<float>& values) {
  const auto count = static_cast<std::size_t>(args.query_start_loc[args.num_seqs] * args.q_stride);
  std::vector<std::byte> bytes(bytes_of(dtype, count));
  values.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = std::isnan(args.q[i]) ? args.q[i] : f32_from_f16(f16_from_f32(args.q[i]));
    reference::store_value(bytes.data(), dtype, i, values[i]);
  }
  return bytes;
}

std::vector<float> attend(Device& device, const Int8Case& test, const PagedAttentionArgs& args,
                          const std::vector<std::byte>& queries, bool is_prefill) {
  const Int8Cache cache(device, args.cache);
  const auto seqs = static_cast<std::size_t>(args.num_seqs);
  const int tokens = args.query_start_loc[args.num_seqs];
  int longest = 0, longest_query = 0;
  for (int seq = 0; seq < args.num_seqs; ++seq) {
    longest = std::max(longest, args.context_lens[seq]);
    longest_query = std::max(longest_query, args.query_start_loc[seq + 1] - args.query_start_loc[seq]);
  }
  const DeviceTensor q(device, queries);
  const DeviceTensor tables(device, args.block_tables, 4 * seqs * static_cast<std::size_t>(args.max_blocks_per_seq));
  const DeviceTensor starts(device, args.query_start_loc, 4 * (seqs + 1)),
      contexts(device, args.context_lens, 4 * seqs);
  const DeviceTensor out(device,
                         sizeof(float) * static_cast<std::size_t>(tokens * args.num_heads * args.cache.head_dim));
  const DeviceTensor workspace(
      device, sizeof(float) * static_cast<std::size_t>(paged_attention_workspace(
                                  tokens, args.num_heads, args.cache.head_dim, longest, test.partition_tokens)));
  if (is_prefill)
    device.prefill_attention({.q = {q.as(), test.query},
                              .q_stride = args.q_stride,
                              .cache = cache.view,
                              .block_tables = tables.as<std::int32_t>(),
                              .max_blocks_per_seq = args.max_blocks_per_seq,
                              .query_start_loc = starts.as<std::int32_t>(),
                              .context_lens = contexts.as<std::int32_t>(),
                              .max_query_len = longest_query,
                              .out = {out.as(), Dtype::f32},
                              .num_seqs = args.num_seqs,
                              .num_heads = args.num_heads,
                              .scale = args.scale});
  else
    device.paged_attention({.q = {q.as(), test.query},
                            .q_stride = args.q_stride,
                            .cache = cache.view,
                            .block_tables = tables.as<std::int32_t>(),
                            .max_blocks_per_seq = args.max_blocks_per_seq,
                            .context_lens = contexts.as<std::int32_t>(),
                            .max_context_len = longest,
                            .out = {out.as(), Dtype::f32},
                            .num_seqs = args.num_seqs,
                            .num_heads = args.num_heads,
                            .scale = args.scale,
                            .partition_tokens = test.partition_tokens,
                            .workspace = workspace.as<float>(),
                            .queries = longest_query > 1 ? DecodeQueries{.start_loc = starts.as<std::int32_t>(),
                                                                         .num_tokens = tokens,
                                                                         .max_tokens_per_seq = longest_query}
                                                         : DecodeQueries()});
  return out.read_numbers(Dtype::f32);
}

// Scores have the error of f32 arithmetic, 2^-18 for those below 2^6. In prefill halves hold what codes stand for, and
// the softmax's weights: a rounding of 2^-11 of each, which products of size 1 add up like a random walk, four times
// that at the worst. An error e of the scores changes weights by 2 e, the result by 2 e max|v|; max|v| is below 6.
void check_attention(const Int8Case& test, const std::vector<NewTokens>& calls, bool is_prefill) {
  std::vector<int> lengths;
  for (const NewTokens& call : calls) lengths.push_back(call.context);
  PagedSequences sequences(test.shape, lengths);
  sequences.page(test.block_size);
  const bool in_halves = is_prefill && test.query == Dtype::f16;
  const double score_error = 0x1p-18 + (in_halves ? 4 * 0x1p-11 / std::sqrt(3.0) : 0.0);
  const double tolerance = 6 * (2 * score_error + (in_halves ? 2 * 0x1p-11 : 0.0));
  sequences.run(calls, [&](PagedAttentionArgs args) {
    std::vector<float> values;
    const std::vector<std::byte> queries = stored_queries(args, test.query, values);
    args.q = values.data();
    reference::paged_attention(args);
    const std::vector<float> expected(args.out, args.out + std::ptrdiff_t{args.query_start_loc[args.num_seqs]} *
                                                               args.num_heads * args.cache.head_dim);
    for_each_device([&](Device& device) {
      CHECK(largest_difference(attend(device, test, args, queries, is_prefill), expected) <= tolerance);
    });
  });
}

}  // namespace

TEST_CASE("GPU int8 pairs become the halves of their codes") {
  using namespace host_build;
  for (std::uint32_t low = 0; low < 256; ++low) {
    const std::uint32_t high = 255 - low;
    const HalfPair pair = to_half_pair<Int8>(low | high << 8 | 0xABCD0000U);
    CHECK(to_float(low_half(pair)) == static_cast<float>(static_cast<std::int8_t>(low)));
    CHECK(to_float(high_half(pair)) == static_cast<float>(static_cast<std::int8_t>(high)));
  }
}

void check_same(const Int8Cache& cache, const CacheMemory& expected) {
  CHECK(cache.k.read<std::uint16_t>() == expected.k);
  CHECK(cache.v.read<std::uint16_t>() == expected.v);
  CHECK(same_bits(cache.k_scales.read<float>(), expected.k_scales));
  CHECK(same_bits(cache.v_scales.read<float>(), expected.v_scales));
}

TEST_CASE("GPU int8 caches are written as the reference writes them", "[gpu]") {
  const auto source_dtype = GENERATE(Dtype::f32, Dtype::f16);
  const auto& [heads, head_dim, block_size] =
      GENERATE(table<int, int, int>({{1, 8, 1}, {2, 80, 16}, {5, 128, 7}, {3, 32, 256}, {9, 256, 4}}));
  const bool by_head = GENERATE(false, true);
  CAPTURE(name(source_dtype), heads, head_dim, block_size, by_head);
  TensorSource source(3);
  const int width = heads * head_dim, stride = 2 * width + 8, tokens = 7;
  auto kv = source.stored(static_cast<std::size_t>(tokens * stride), source_dtype, 4.0F);
  std::fill_n(kv.begin(), bytes_of(source_dtype, static_cast<std::size_t>(head_dim)), std::byte{0});  // a scale of 0
  const auto wide = widen(kv, source_dtype);
  const std::vector<std::int64_t> slots{3, -1, 1, 11, 0, 7, 10};
  CacheMemory expected(Dtype::int8, 2 + 12 / block_size, heads, block_size, head_dim);
  reference::reshape_and_cache({.k = wide.data(),
                                .v = wide.data() + width,
                                .kv_stride = stride,
                                .slot_mapping = slots.data(),
                                .cache = expected.view,
                                .num_tokens = tokens});
  const std::vector<std::int64_t> own(static_cast<std::size_t>(heads), slots[3]);
  for_each_device([&](Device& device) {
    const Int8Cache cache(device, CacheMemory(Dtype::int8, 2 + 12 / block_size, heads, block_size, head_dim).view);
    const DeviceTensor values(device, kv), places(device, own);
    std::vector<std::int64_t> mapping = slots;
    if (by_head) mapping[3] = 5;  // that of its heads counts
    std::vector<const std::int64_t*> of_tokens(tokens, nullptr);
    of_tokens[3] = places.as<std::int64_t>();
    const DeviceTensor slot(device, mapping), own_slots(device, of_tokens);
    ReshapeAndCache args{
        .k = {values.as(), source_dtype},
        .v = {values.as<std::byte>() + bytes_of(source_dtype, static_cast<std::size_t>(width)), source_dtype},
        .kv_stride = stride,
        .slot_mapping = slot.as<std::int64_t>(),
        .cache = cache.view,
        .num_tokens = tokens};
    if (by_head) args.head_slots = {own_slots.as<const std::int64_t*>(), 0};
    device.reshape_and_cache(args);
    check_same(cache, expected);
  });
}

TEST_CASE("GPU decode attention over int8 agrees with the reference", "[gpu]") {
  const Int8Case cases[] = {{shape_of(4, 2, 64)},
                            {shape_of(5, 5, 80), 1, 32, Dtype::f32},
                            {shape_of(8, 1, 128), 64, 0, Dtype::f32},
                            {shape_of(12, 1, 32), 4, 64},
                            {shape_of(3, 1, 256), 256}};
  std::size_t turn = 0;
  for (const Int8Case& test : cases) {
    if (thinned_out(turn++, 2)) continue;
    INFO(test.shape.num_heads << " heads, " << test.shape.num_kv_heads << " of K and V, of " << test.shape.head_dim);
    check_attention(test, {{0, 1, 1}, {1, 70, 1}, {2, 333, 1}}, false);
    check_attention(test, {{0, 3, 2}, {1, 90, 3}}, false);  // several new tokens
  }
}

TEST_CASE("GPU prefill attention over int8 agrees with the reference", "[gpu]") {
  const Int8Case cases[] = {
      {shape_of(4, 2, 64)},    {shape_of(5, 5, 80), 1, 0, Dtype::f32},   {shape_of(8, 1, 128), 64},
      {shape_of(6, 2, 96), 7}, {shape_of(2, 1, 256), 16, 0, Dtype::f32}, {shape_of(4, 4, 32), 16}};
  std::size_t turn = 0;
  for (const Int8Case& test : cases) {
    if (thinned_out(turn++, 3)) continue;
    INFO(test.shape.num_heads << " heads, " << test.shape.num_kv_heads << " of K and V, of " << test.shape.head_dim);
    check_attention(test, {{0, 1, 1}, {1, 41, 41}, {2, 70, 33}}, true);
  }
}

TEST_CASE("GPU int8 caches of heads that no kernel is compiled for are refused", "[gpu]") {
  for_each_device([&](Device& device) {
    const DeviceTensor memory(device, 1024);
    ReshapeAndCache args;
    args.k = args.v = {memory.as(), Dtype::f16}, args.kv_stride = 512;
    args.cache = {
        .k = memory.as(), .v = memory.as(), .dtype = Dtype::int8, .num_kv_heads = 1, .block_size = 1, .head_dim = 512};
    CHECK_THROWS_WITH(device.reshape_and_cache(args), ContainsSubstring("head_dim 512"));
  });
}

}  // namespace dculab::kernels::gpu
