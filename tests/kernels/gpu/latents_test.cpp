// Do the GPU kernels of multi-head latent attention beside attention itself agree with the reference: absorbed
// products, what latents expand to?
#include <cmath>

#include "kernels/reference/reference_kernels.hpp"
#include "tests/kernels/gpu/device_under_test.hpp"
#include "tests/kernels/gpu/latent_cases.hpp"
#include "tests/kernels/tensors.hpp"

namespace dculab::kernels::gpu {
namespace {

// kv_b_proj of a model, inputs in wider rows, and both products of the reference.
struct Absorbed {
  static constexpr int kGap = 8;
  LatentSizes sizes;
  int tokens;
  std::int64_t stride;
  std::vector<std::byte> x, weight;
  std::vector<float> k, v;

  Absorbed(const LatentSizes& of, int count, Dtype x_dtype, Dtype w_dtype)
      : sizes(of), tokens(count), stride(of.num_heads * std::max(of.qk_head_dim(), of.kv_lora_rank) + kGap) {
    TensorSource source(17);
    const int rows = sizes.num_heads * sizes.expanded_head_dim();
    x = source.stored(product_of(tokens, stride), x_dtype);
    weight = source.stored(product_of(rows, sizes.kv_lora_rank), w_dtype);
    const std::vector<float> wide = widen(x, x_dtype);
    k.resize(product_of(tokens, sizes.num_heads * sizes.latent_width()), NAN);
    v.resize(product_of(tokens, sizes.num_heads * sizes.v_head_dim), NAN);
    AbsorbArgs args{.sizes = sizes,
                    .kv_b_proj = {weight.data(), w_dtype, rows},
                    .x = wide.data(),
                    .x_stride = stride,
                    .y = k.data(),
                    .num_tokens = tokens};
    reference::absorb_k(args);
    args.y = v.data();
    reference::absorb_v(args);
  }
};

// As many products of size 1, summed in f32, then rounded.
void require_sums(const std::vector<float>& got, const std::vector<float>& expected, int count, Dtype dtype) {
  const double of_sum = sum_tolerance(count, 1.0);
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    REQUIRE(std::abs(got[i] - expected[i]) <= of_sum + rounding(dtype) * (std::abs(expected[i]) + of_sum));
}

}  // namespace

TEST_CASE("GPU absorbed products agree with the reference in every format", "[gpu]") {
  for (const Dtype x : {Dtype::f16, Dtype::f32})
    for (const Dtype w : {Dtype::f16, Dtype::bf16, Dtype::f32})
      for (const int tokens : {1, 2, 3, 11}) {
        if (tokens == 11 && x != Dtype::f16) continue;
        const Absorbed test(tokens == 3 ? LatentSizes{3, 512, 128, 64, 128} : kOfFewValues, tokens, x, w);
        INFO(name(x) << " activations, " << name(w) << " weights, " << tokens << " tokens");
        for_each_device([&](Device& device) {
          const DeviceTensor device_x(device, test.x), weight(device, test.weight, OperandRole::weight);
          const DeviceTensor k(device, bytes_of(x, test.k.size())), v(device, bytes_of(x, test.v.size()));
          Absorb args{.sizes = test.sizes,
                      .kv_b_proj = {weight.as(), w},
                      .x = {device_x.as(), x},
                      .x_stride = test.stride,
                      .y = {k.as(), x},
                      .num_tokens = tokens};
          device.absorb_k(args);
          args.y.data = v.as();
          device.absorb_v(args);
          require_sums(k.read_numbers(x), test.k, test.sizes.qk_nope_head_dim, x);
          require_sums(v.read_numbers(x), test.v, test.sizes.kv_lora_rank, x);
        });
      }
}

TEST_CASE("GPU gather_latents widens rows of the cache", "[gpu]") {
  const LatentSizes sizes = kOfFewValues;
  const std::int32_t table[] = {2, 0, 3};
  for (const Dtype cache : kLatentCaches) {
    TensorSource source(4);
    const auto width = static_cast<std::size_t>(sizes.latent_width());
    const auto latents = source.stored(4 * 8 * width, cache);
    const auto wide = widen(latents, cache);
    const float scale = bits(cache) == 8 ? 0.25F : 1.0F;
    for_each_device([&](Device& device) {
      const DeviceTensor memory(device, latents), device_table(device, table, sizeof table);
      const DeviceTensor out(device, bytes_of(Dtype::f32, 14 * width));
      device.gather_latents({.cache = {.k = memory.as(),
                                       .v = memory.as(),
                                       .dtype = cache,
                                       .num_blocks = 4,
                                       .num_kv_heads = 1,
                                       .block_size = 8,
                                       .head_dim = sizes.latent_width(),
                                       .extras = Fp8KvScales{.k = scale}},
                             .block_table = device_table.as<std::int32_t>(),
                             .begin = 5,
                             .end = 19,
                             .out = {out.as(), Dtype::f32}});
      const auto got = out.read_numbers(Dtype::f32);
      for (std::size_t i = 0; i < got.size(); ++i) {
        const std::size_t token = 5 + i / width;
        const std::size_t slot = static_cast<std::size_t>(table[token / 8]) * 8 + token % 8;
        REQUIRE(got[i] == wide[slot * width + i % width] * scale);
      }
    });
  }
}

// Gathered latents, their product with kv_b_proj and what prefill attends to, against attention of the reference over K
// and V as they are stored.
TEST_CASE("GPU prefill over what latents expand to agrees with the reference", "[gpu]") {
  for (const auto& [sizes, dtype] : {std::pair{LatentSizes{2, 512, 128, 64, 128}, Dtype::f16},
                                     {LatentSizes{3, 40, 24, 8, 24}, Dtype::f16},
                                     {LatentSizes{3, 40, 24, 8, 24}, Dtype::f32}}) {
    constexpr int kContext = 41, kNew = 23;
    INFO(sizes.kv_lora_rank << " " << name(dtype));
    TensorSource source(9);
    const int heads = sizes.num_heads, expanded_width = heads * sizes.expanded_head_dim();
    const auto latents = source.stored(product_of(kContext, sizes.latent_width()), dtype);
    const auto rows = source.stored(product_of(kContext, expanded_width), Dtype::f16);
    const auto q = source.stored(product_of(kNew, heads * sizes.qk_head_dim()), dtype);
    const auto wide_latents = widen(latents, dtype), wide_rows = widen(rows, Dtype::f16), wide_q = widen(q, dtype);
    // What the reference attends to: the same rows in F32, but keys as the GPU rounds them.
    std::vector<float> keys, k(product_of(64, heads * sizes.qk_head_dim())),
        v(product_of(64, heads * sizes.v_head_dim));
    for (int token = 0; token < kContext; ++token)
      for (int i = 0; i < sizes.qk_rope_head_dim; ++i) {
        std::byte rounded[2];
        const auto at = product_of(token, sizes.latent_width()) + static_cast<std::size_t>(sizes.kv_lora_rank + i);
        reference::store_value(rounded, Dtype::f16, 0, wide_latents[at]);
        keys.push_back(static_cast<float>(reference::load_value(rounded, Dtype::f16, 0)));
      }
    const KvCacheView expanded{.k = k.data(),
                               .v = v.data(),
                               .dtype = Dtype::f32,
                               .num_blocks = 1,
                               .num_kv_heads = heads,
                               .block_size = 64,
                               .head_dim = sizes.qk_head_dim(),
                               .value_dim = sizes.v_head_dim};
    reference::store_expanded({.sizes = sizes,
                               .expanded = wide_rows.data(),
                               .keys = keys.data(),
                               .cache = expanded,
                               .first_slot = 0,
                               .num_tokens = kContext});
    const std::int32_t table[] = {0}, starts[] = {0, kNew}, contexts[] = {kContext};
    std::vector<float> expected(product_of(kNew, heads * sizes.v_head_dim));
    const float scale = 1.0F / std::sqrt(static_cast<float>(sizes.qk_head_dim()));
    reference::paged_attention({.q = wide_q.data(),
                                .q_stride = heads * sizes.qk_head_dim(),
                                .cache = expanded,
                                .block_tables = table,
                                .max_blocks_per_seq = 1,
                                .query_start_loc = starts,
                                .context_lens = contexts,
                                .out = expected.data(),
                                .num_seqs = 1,
                                .num_heads = heads,
                                .scale = scale});
    for_each_device([&](Device& device) {
      const DeviceTensor device_latents(device, latents), device_rows(device, rows), device_q(device, q);
      const DeviceTensor device_k(device, product_of(kExpandedBlock * heads, kExpandedHeadDim) * 2);
      const DeviceTensor device_v(device, product_of(kExpandedBlock * heads, kExpandedValueDim) * 2);
      const DeviceTensor device_table(device, table, sizeof table), device_starts(device, starts, sizeof starts);
      const DeviceTensor device_contexts(device, contexts, sizeof contexts);
      const DeviceTensor out(device, bytes_of(Dtype::f32, expected.size()));
      const KvCacheView cache{.k = device_k.as(),
                              .v = device_v.as(),
                              .dtype = Dtype::f16,
                              .num_blocks = 1,
                              .num_kv_heads = heads,
                              .block_size = kExpandedBlock,
                              .head_dim = kExpandedHeadDim,
                              .value_dim = kExpandedValueDim};
      for (const auto& [begin, end] : {std::pair{0, 30}, {30, kContext}})
        device.store_expanded(
            {.sizes = sizes,
             .expanded = {device_rows.as<std::uint16_t>() + begin * expanded_width, Dtype::f16},
             .latents = {device_latents.as<std::byte>() + bytes_of(dtype, product_of(begin, sizes.latent_width())),
                         dtype},
             .cache = cache,
             .first_slot = begin,
             .num_tokens = end - begin});
      device.prefill_attention({.q = {device_q.as(), dtype},
                                .q_stride = heads * sizes.qk_head_dim(),
                                .cache = cache,
                                .block_tables = device_table.as<std::int32_t>(),
                                .max_blocks_per_seq = 1,
                                .query_start_loc = device_starts.as<std::int32_t>(),
                                .context_lens = device_contexts.as<std::int32_t>(),
                                .max_query_len = kNew,
                                .out = {out.as(), Dtype::f32},
                                .num_seqs = 1,
                                .num_heads = heads,
                                .scale = scale,
                                .query_dim = sizes.qk_head_dim(),
                                .out_dim = sizes.v_head_dim,
                                .out_stride = heads * sizes.v_head_dim});
      const auto got = out.read_numbers(Dtype::f32);
      // As prefill_attention_test.cpp derives the error of a weight; |V| is 4 at most.
      const double error =
          2 * 0x1p-24 * (16 * std::sqrt(sizes.qk_head_dim()) + 44 + kContext) + (dtype == Dtype::f16 ? 0x1p-11 : 0.0);
      for (std::size_t i = 0; i < got.size(); ++i) REQUIRE(std::abs(got[i] - expected[i]) <= error * 4);
    });
  }
}

TEST_CASE("GPU products read a part of wider rows", "[gpu]") {
  for (const int m : {3, 40}) {
    constexpr int kWidth = 72, kIn = 48, kOut = 20;
    TensorSource source(14);
    const auto x = source.floats(product_of(m, kWidth)), w = source.floats(product_of(kOut, kIn));
    std::vector<float> narrow, expected(product_of(m, kOut));
    for (int row = 0; row < m; ++row)
      narrow.insert(narrow.end(), x.begin() + row * kWidth, x.begin() + row * kWidth + kIn);
    MatmulArgs args{.x = narrow.data(), .weights = {}, .y = expected.data(), .m = m, .k = kIn};
    args.weights[0] = {w.data(), Dtype::f32, kOut};
    reference::matmul(args);
    for_each_device([&](Device& device) {
      const DeviceTensor device_x(device, x), device_w(device, w, OperandRole::weight);
      const DeviceTensor y(device, expected.size() * sizeof(float));
      device.matmul({.x = {device_x.as(), Dtype::f32},
                     .w = {device_w.as(), Dtype::f32},
                     .y = {y.as(), Dtype::f32},
                     .m = m,
                     .n = kOut,
                     .k = kIn,
                     .y_stride = kOut,
                     .x_stride = kWidth});
      require_sums(y.read_numbers(Dtype::f32), expected, kIn, Dtype::f32);
    });
  }
}

TEST_CASE("GPU products refuse rows that are too short, or that 32 bits do not reach across", "[gpu]") {
  for_each_device([](Device& device) {
    for (const int stride : {40, (1 << 22) + 8})
      CHECK_THROWS_WITH(
          device.matmul({.x = {}, .w = {}, .y = {}, .m = 1, .n = 8, .k = 48, .y_stride = 8, .x_stride = stride}),
          ContainsSubstring("input rows of " + std::to_string(stride) + " values"));
  });
}

}  // namespace dculab::kernels::gpu
