// Does the GPU's attention of prefill agree with the reference?
#include <cmath>

#include "kernels/reference/reference_kernels.hpp"
#include "lower/dculab_gpu/geometry.hpp"
#include "tests/kernels/gpu/cached_attention.hpp"

namespace dculab::kernels::gpu {
namespace {

struct Case {
  AttentionShape shape;
  Dtype q = Dtype::f16;
  Dtype out = Dtype::f16;
  int block_size = 16;
  std::vector<NewTokens> calls;
  int sliding_window = 0;
  bool alibi = false;
  float logit_soft_cap = 0;
  float k_scale = 1.0F, v_scale = 1.0F;
};

// Relative error of one weight of the softmax.
double weight_error(const Case& test) {
  int longest = 1;
  for (const NewTokens& call : test.calls) longest = std::max(longest, call.context);
  // In units of 2^-24. Scores: head_dim roundings of sums below 8, a random walk with a margin of 2. Exponential: its
  // argument, of up to 20 where it matters, is scaled and subtracted, and twice 2 ulp. Sums: one rounding per token.
  double error = 16 * std::sqrt(test.shape.head_dim) + 2 * 20 + 4 + longest;
  // Numerator and denominator.
  error *= 2 * 0x1p-24;
  // A weight that is stored as a half is the same in numerator and denominator.
  if (prefill_arithmetic(test.q, test.shape.dtype) == PrefillArithmetic::half_pairs) error += rounding(Dtype::f16);
  return error;
}

template <typename T>
std::size_t number_of(T count) {
  return static_cast<std::size_t>(count);
}

// Values that the device is given, and the same as floats.
struct StoredQueries {
  StoredQueries(const PagedAttentionArgs& args, Dtype dtype) {
    const auto count = number_of(args.query_start_loc[args.num_seqs] * args.q_stride);
    bytes.resize(bytes_of(dtype, count));
    for (std::size_t i = 0; i < count; ++i) reference::store_value(bytes.data(), dtype, i, args.q[i]);
    values = widen(bytes, dtype);
  }
  std::vector<std::byte> bytes;
  std::vector<float> values;
};

// The output, and the same with |V|: the largest that errors of the weights can weigh.
struct Expected {
  Expected(PagedAttentionArgs args) {
    out.resize(number_of(args.query_start_loc[args.num_seqs] * args.num_heads * args.cache.head_dim));
    magnitude = out;
    args.out = out.data();
    reference::paged_attention(args);
    const auto count = number_of(args.cache.num_blocks) * number_of(args.cache.num_kv_heads) *
                       number_of(args.cache.block_size) * number_of(args.cache.head_dim);
    std::vector<std::byte> v(bytes_of(args.cache.dtype, count));
    for (std::size_t i = 0; i < count; ++i)
      reference::store_value(v.data(), args.cache.dtype, i,
                             std::abs(reference::load_value(args.cache.v, args.cache.dtype, i)));
    args.cache.v = v.data();
    args.out = magnitude.data();
    reference::paged_attention(args);
  }
  std::vector<float> out, magnitude;
};

// The block tables, without the blocks that no query's window reaches: they may belong to others by then.
std::vector<std::int32_t> tables_in_window(const Case& test, const PagedAttentionArgs& args) {
  const auto width = number_of(args.max_blocks_per_seq);
  std::vector<std::int32_t> tables(args.block_tables, args.block_tables + number_of(args.num_seqs) * width);
  if (test.sliding_window == 0) return tables;
  for (std::size_t i = 0; i < test.calls.size(); ++i) {
    const NewTokens& call = test.calls[i];
    const int first_visible = std::max(0, call.context - call.tokens + 1 - test.sliding_window);
    std::fill_n(tables.begin() + static_cast<std::ptrdiff_t>(i * width), first_visible / test.block_size, -1'000'000);
  }
  return tables;
}

void check_prefill(const Case& test) {
  std::vector<int> lengths;
  for (const NewTokens& call : test.calls) {
    lengths.resize(std::max(lengths.size(), number_of(call.sequence) + 1), 1);
    int& length = lengths[number_of(call.sequence)];
    length = std::max(length, call.context);
  }
  PagedSequences sequences(test.shape, lengths);
  sequences.page(test.block_size);
  (void)sequences.run(test.calls, [&](PagedAttentionArgs args) {
    const StoredQueries queries(args, test.q);
    std::vector<float> slopes;
    for (int head = 0; head < args.num_heads; ++head) slopes.push_back(std::exp2(-1.0F - static_cast<float>(head)));
    args.q = queries.values.data();
    args.cache.extras = Fp8KvScales{test.k_scale, test.v_scale};
    args.alibi_slopes = test.alibi ? slopes.data() : nullptr;
    args.sliding_window = test.sliding_window;
    args.logit_soft_cap = test.logit_soft_cap;
    const auto tables = tables_in_window(test, args);
    args.block_tables = tables.data();
    const Expected expected(args);
    const double of_weights = weight_error(test);
    for_each_device([&](Device& device) {
      const CacheOnDevice cache(device, args.cache);
      const auto got =
          attend(device, {.phase = Phase::prefill, .query = test.q, .out = test.out}, args, cache.view, queries.bytes);
      REQUIRE(got.size() == expected.out.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        // Errors of weights move the output towards or away from each V: at most by their share of |V| + |out|.
        const double out = std::abs(expected.out[i]);
        const double tolerance = of_weights * (expected.magnitude[i] + out) + rounding(test.out) * out + 0x1p-25;
        CAPTURE(i, expected.out[i], got[i], tolerance);
        if (!(std::abs(got[i] - expected.out[i]) <= tolerance)) FAIL("too far from the reference");
      }
      SUCCEED();
    });
  });
}

}  // namespace

TEST_CASE("GPU prefill_attention agrees for query lengths around the tile and chunks at an offset", "[gpu]") {
  const int group = GENERATE(1, 2, 3, 4, 8);
  const auto q = GENERATE(Dtype::f16, Dtype::f32);
  CAPTURE(group, name(q));
  const auto tile = prefill_tile(prefill_arithmetic(q, Dtype::f16), 32);
  const int tokens = tile.rows / group;
  check_prefill({.shape = {group, 1, 32, Dtype::f16},
                 .q = q,
                 .out = q,
                 .calls = {{0, 1, 1},
                           {1, tokens - 1, tokens - 1},
                           {2, tokens, tokens},
                           {3, tokens + 1, tokens + 1},
                           {4, 16, 16},
                           {5, 17, 3},
                           {6, 49 + tokens, tokens + 1}}});
}

TEST_CASE("GPU prefill_attention agrees for every head size and format", "[gpu]") {
  const auto head_dim = GENERATE(32, 64, 80, 96, 128, 256);
  const auto cache = GENERATE(Dtype::f16, Dtype::bf16, Dtype::fp8_e4m3, Dtype::fp8_e5m2);
  const auto q = GENERATE(Dtype::f16, Dtype::f32);
  const bool odd = (head_dim / 16 + static_cast<int>(cache) + static_cast<int>(q)) % 2 == 1;
  CAPTURE(name(cache), head_dim, name(q), odd);
  check_prefill({.shape = {4, 2, head_dim, cache},
                 .q = q,
                 .out = odd ? Dtype::f32 : Dtype::f16,
                 .block_size = odd ? 7 : 64,
                 .calls = {{0, 35, 19}, {1, 5, 5}},
                 .k_scale = cache == Dtype::fp8_e4m3 ? 0.7F : 1.0F,
                 .v_scale = cache == Dtype::fp8_e4m3 ? 1.7F : 1.0F});
}

TEST_CASE("GPU prefill_attention agrees for every block size, at and around a block's boundary", "[gpu]") {
  const int block_size = GENERATE(1, 3, 8, 16, 32, 64, 128, 256);
  CAPTURE(block_size);
  check_prefill({.shape = {2, 1, 32, Dtype::f16},
                 .block_size = block_size,
                 .calls = {{0, block_size, std::min(block_size, 33)},
                           {1, block_size + 1, 2},
                           {2, std::max(1, block_size - 1), 1},
                           {3, 2 * block_size + 1, std::min(block_size + 1, 20)}}});
}

TEST_CASE("GPU prefill_attention agrees with ALiBi, a sliding window, and both", "[gpu]") {
  const auto q = GENERATE(Dtype::f16, Dtype::f32);
  const auto& [window, alibi] =
      GENERATE(table<int, bool>({{0, true}, {1, false}, {5, false}, {32, true}, {33, false}, {64, true}, {500, true}}));
  CAPTURE(name(q), window, alibi);
  check_prefill({.shape = {6, 2, 32, Dtype::f16},
                 .q = q,
                 .out = Dtype::f32,
                 .block_size = 8,
                 .calls = {{0, 100, 40}, {1, 66, 1}, {2, 30, 30}},
                 .sliding_window = window,
                 .alibi = alibi});
}

TEST_CASE("GPU prefill_attention caps its scores, before ALiBi", "[gpu]") {
  const auto q = GENERATE(Dtype::f16, Dtype::f32);
  const auto& [cap, alibi] = GENERATE(table<float, bool>({{0.5F, false}, {2.0F, true}, {50.0F, false}}));
  CAPTURE(name(q), cap, alibi);
  check_prefill({.shape = {6, 2, 32, Dtype::f16},
                 .q = q,
                 .out = Dtype::f32,
                 .block_size = 8,
                 .calls = {{0, 100, 40}, {1, 66, 1}, {2, 30, 30}},
                 .sliding_window = 33,
                 .alibi = alibi,
                 .logit_soft_cap = cap});
}

TEST_CASE("GPU prefill_attention refuses what it is not compiled for, and says what it is", "[gpu]") {
  for_each_device([&](Device& device) {
    PrefillAttention args;
    args.cache = {nullptr, nullptr, Dtype::f16, 1, 1, 16, 72};
    args.q_stride = 72, args.num_heads = 1, args.num_seqs = 1, args.max_query_len = 1;
    CHECK_THROWS_WITH(device.prefill_attention(args),
                      ContainsSubstring("head_dim 72") && ContainsSubstring("32, 64, 80, 96, 128, 256"));
    args.cache.head_dim = 64, args.cache.block_size = 512;
    CHECK_THROWS_WITH(device.prefill_attention(args), ContainsSubstring("512") && ContainsSubstring("1 to 256"));
    args.cache.block_size = 16, args.q_stride = 65;
    CHECK_THROWS_WITH(device.prefill_attention(args), ContainsSubstring("65"));
    args.q_stride = 64, args.cache.dtype = Dtype::kvquant4;
    CHECK_THROWS_WITH(device.prefill_attention(args), ContainsSubstring("kvquant4") && ContainsSubstring("bf16"));
    args.cache.dtype = Dtype::f16, args.cache.num_blocks = 1 << 30;
    CHECK_THROWS_WITH(device.prefill_attention(args), ContainsSubstring("2048") && ContainsSubstring("reaches 32"));
  });
}

}  // namespace dculab::kernels::gpu
