// Do the GPU kernels that newer families need agree with the reference: norms of heads, GeGLU, partial rotation, ...?
#include <cmath>

#include "core/error.hpp"
#include "kernels/reference/reference_kernels.hpp"
#include "tests/kernels/gpu/device_under_test.hpp"
#include "tests/kernels/tensors.hpp"

namespace dculab::kernels::gpu {
TEST_CASE("GPU head_norm agrees with the reference and leaves what follows the heads", "[gpu]") {
  const auto dtype = GENERATE(Dtype::f32, Dtype::f16);
  const auto weight_dtype = GENERATE(Dtype::f32, Dtype::bf16);
  const auto [heads, head_dim] = GENERATE(std::pair{1, 8}, std::pair{5, 128}, std::pair{9, 72}, std::pair{1, 4100});
  CAPTURE(name(dtype), name(weight_dtype), heads, head_dim);
  constexpr int kTokens = 3, kBehind = 5;
  const int stride = heads * head_dim + kBehind;
  TensorSource source(21);
  const auto x = source.stored(static_cast<std::size_t>(kTokens * stride), dtype);
  const auto weight = source.stored(static_cast<std::size_t>(head_dim), weight_dtype);
  auto expected = widen(x, dtype);
  reference::head_norm({.x = expected.data(),
                        .stride = stride,
                        .weight = {weight.data(), weight_dtype, head_dim},
                        .num_tokens = kTokens,
                        .num_heads = heads,
                        .head_dim = head_dim,
                        .epsilon = 1e-5F});
  for_each_device([&](Device& device) {
    const DeviceTensor out(device, x), device_weight(device, weight);
    device.head_norm({.x = {out.as(), dtype},
                      .stride = stride,
                      .weight = {device_weight.as(), weight_dtype},
                      .num_tokens = kTokens,
                      .num_heads = heads,
                      .head_dim = head_dim,
                      .epsilon = 1e-5F});
    const auto got = out.read_numbers(dtype);
    // A lane sums head_dim / 32 squares at most; half of that error is the factor's.
    const double relative = rounding(dtype) + (head_dim / 32 + 12) * kUlp;
    for (std::size_t i = 0; i < got.size(); ++i)
      REQUIRE(std::abs(got[i] - expected[i]) <= relative * std::abs(expected[i]) + smallest_step(dtype));
  });
}

TEST_CASE("GPU residual_add adds what is given, and hands on the residual", "[gpu]") {
  const auto dtype = GENERATE(Dtype::f32, Dtype::f16);
  const std::size_t count = GENERATE(1, 7, 2048, 6151);
  const bool with_x = GENERATE(true, false);
  CAPTURE(name(dtype), count, with_x);
  TensorSource source(22);
  const auto x = source.stored(count, dtype);
  const auto residual = source.floats(count);
  const auto wide = widen(x, dtype);
  auto expected = residual;
  std::vector<float> expected_out(count);
  const auto values = static_cast<std::int64_t>(count);
  reference::residual_add({with_x ? wide.data() : nullptr, expected.data(), expected_out.data(), values});
  for_each_device([&](Device& device) {
    const DeviceTensor device_x(device, x), device_residual(device, residual), out(device, bytes_of(dtype, count));
    device.residual_add({.x = {with_x ? device_x.as() : nullptr, dtype},
                         .residual = device_residual.as<float>(),
                         .out = {out.as(), dtype},
                         .count = values});
    CHECK(largest_difference(device_residual.read<float>(), expected) == 0);
    const auto got = out.read_numbers(dtype);
    for (std::size_t i = 0; i < count; ++i)
      REQUIRE(std::abs(got[i] - expected_out[i]) <= rounding(dtype) * std::abs(expected_out[i]) + smallest_step(dtype));
  });
}

TEST_CASE("GPU soft_cap agrees with the reference, near zero and far from it", "[gpu]") {
  const auto dtype = GENERATE(Dtype::f32, Dtype::f16);
  const auto scale = GENERATE(0.01F, 1.0F, 200.0F);
  CAPTURE(name(dtype), scale);
  constexpr std::size_t kCount = 3001;
  constexpr float kCap = 30;
  TensorSource source(23);
  const auto x = source.stored(kCount, dtype, scale);
  auto expected = widen(x, dtype);
  reference::soft_cap({expected.data(), kCount, kCap});
  for_each_device([&](Device& device) {
    const DeviceTensor out(device, x);
    device.soft_cap({.x = {out.as(), dtype}, .count = kCount, .cap = kCap});
    const auto got = out.read_numbers(dtype);
    for (std::size_t i = 0; i < kCount; ++i) {
      // From 0.02 on, 1 - e^-2a loses up to 5 bits; below, the next term of the series is 2 / 15 a^5, 2e-8 of a.
      const double relative = rounding(dtype) + 64 * kUlp;
      REQUIRE(std::abs(got[i] - expected[i]) <= relative * std::abs(expected[i]) + smallest_step(dtype));
    }
  });
}

TEST_CASE("GPU GELU and multiply agrees with the reference", "[gpu]") {
  const auto in_dtype = GENERATE(Dtype::f32, Dtype::f16);
  const auto out_dtype = GENERATE(Dtype::f32, Dtype::f16);
  const auto kind = GENERATE(GeluKind::erf, GeluKind::tanh);
  const auto width = GENERATE(1, 65, 2056, 4099);
  CAPTURE(name(in_dtype), name(out_dtype), static_cast<int>(kind), width);
  constexpr int kTokens = 2;
  const auto count = static_cast<std::size_t>(kTokens * width);
  TensorSource source(24);
  const auto gate_up = source.stored(2 * count, in_dtype);
  const auto wide = widen(gate_up, in_dtype);
  std::vector<float> expected(count);
  reference::gelu_mul({wide.data(), expected.data(), kTokens, width, kind});
  for_each_device([&](Device& device) {
    const DeviceTensor device_gate_up(device, gate_up), out(device, bytes_of(out_dtype, count));
    device.gelu_and_mul({.gate_up = {device_gate_up.as(), in_dtype},
                         .out = {out.as(), out_dtype},
                         .num_tokens = kTokens,
                         .width = width,
                         .kind = kind});
    const auto got = out.read_numbers(out_dtype);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t token = i / static_cast<std::size_t>(width);
      const double gate = std::abs(double{wide[i + token * static_cast<std::size_t>(width)]});
      // As of GELU alone: a relative error of the argument is multiplied by up to 2 x^2, or 8 a.
      const double angle = std::sqrt(2 / std::numbers::pi) * (gate + 0.044715 * gate * gate * gate);
      const double argument = kind == GeluKind::erf ? 2 * gate * gate : 8 * angle;
      const double relative = rounding(out_dtype) + (10 + argument) * kUlp;
      REQUIRE(std::abs(got[i] - expected[i]) <= relative * std::abs(expected[i]) + smallest_step(out_dtype));
    }
  });
}

TEST_CASE("GPU part_rotary_embedding turns the part of a head that it is told to", "[gpu]") {
  const auto dtype = GENERATE(Dtype::f32, Dtype::f16);
  const auto [head_dim, rotary_dim] =
      GENERATE(std::pair{16, 8}, std::pair{128, 64}, std::pair{128, 96}, std::pair{64, 64});
  const bool neighbours = GENERATE(true, false);
  CAPTURE(name(dtype), head_dim, rotary_dim, neighbours);
  constexpr int kHeads = 5, kKvHeads = 2, kMaxPosition = 18;
  const std::vector<std::int32_t> positions = {0, 17, 5};
  const int num_tokens = static_cast<int>(positions.size());
  TensorSource source(25);
  const auto qkv = source.stored(static_cast<std::size_t>(num_tokens * (kHeads + 2 * kKvHeads) * head_dim), dtype);
  const std::vector<float> cos_sin = source.floats(static_cast<std::size_t>(kMaxPosition * rotary_dim));
  const std::vector<std::int64_t> slots(positions.size(), -1);
  auto expected = widen(qkv, dtype);
  reference::rope_and_cache({.qkv = expected.data(),
                             .positions = positions.data(),
                             .slot_mapping = slots.data(),
                             .cos_sin = cos_sin.data(),
                             .cache = {.num_kv_heads = kKvHeads, .block_size = 1, .head_dim = head_dim},
                             .num_tokens = num_tokens,
                             .num_heads = kHeads,
                             .rotary_dim = rotary_dim,
                             .neighbours = neighbours});
  for_each_device([&](Device& device) {
    const DeviceTensor out(device, qkv), device_positions(device, positions), device_cos_sin(device, cos_sin);
    device.part_rotary_embedding({.qkv = {out.as(), dtype},
                                  .positions = device_positions.as<std::int32_t>(),
                                  .cos_sin = device_cos_sin.as<float>(),
                                  .num_tokens = num_tokens,
                                  .num_heads = kHeads,
                                  .num_kv_heads = kKvHeads,
                                  .head_dim = head_dim,
                                  .rotary_dim = rotary_dim,
                                  .neighbours = neighbours});
    const auto got = out.read_numbers(dtype);
    for (std::size_t i = 0; i < got.size(); ++i) {
      // Two products and their sum, each factor at most 6 standard deviations large.
      const double tolerance = rounding(dtype) * std::abs(expected[i]) + 3 * kUlp * 2 * 36 + smallest_step(dtype);
      REQUIRE(std::abs(got[i] - expected[i]) <= tolerance);
    }
  });
}

TEST_CASE("GPU kernels of newer families refuse formats that none is compiled for", "[gpu]") {
  for_each_device([](Device& device) {
    CHECK_THROWS_AS(device.head_norm({.x = {nullptr, Dtype::bf16}, .weight = {}}), InputError);
    CHECK_THROWS_AS(device.residual_add({.x = {nullptr, Dtype::bf16}, .out = {}}), InputError);
    CHECK_THROWS_AS(device.soft_cap({.x = {nullptr, Dtype::bf16}}), InputError);
    CHECK_THROWS_AS(device.gelu_and_mul({.gate_up = {nullptr, Dtype::bf16}, .out = {}}), InputError);
    CHECK_THROWS_WITH(
        device.part_rotary_embedding({.qkv = {}, .num_heads = 1, .num_kv_heads = 1, .head_dim = 8, .rotary_dim = 10}),
        ContainsSubstring("within the head"));
  });
}

// The kernels of other layers, told where the parts of MLA's rows lie.
TEST_CASE("GPU rotation of queries and keys, and the cache of latents, agree with the reference", "[gpu]") {
  const LatentSizes sizes{3, 40, 24, 8, 24};
  constexpr int kTokens = 4, kBlockSize = 2;
  const int stride = sizes.num_heads * sizes.qk_head_dim() + sizes.latent_width();  // without a latent of queries
  const std::vector<std::int32_t> positions{3, 0, 2, 1};
  const std::vector<std::int64_t> slots{5, -1, 2, 3};
  for (const bool neighbours : {true, false}) {
    TensorSource source(12);
    const auto rows = source.floats(static_cast<std::size_t>(kTokens * stride)), cos_sin = source.floats(4 * 8);
    auto expected = rows;
    std::vector<std::byte> cached(static_cast<std::size_t>(6 * sizes.latent_width()) * 2, std::byte{0xFF});
    const auto view = [&](void* memory) {
      return KvCacheView{.k = memory,
                         .v = memory,
                         .dtype = Dtype::bf16,
                         .num_blocks = 3,
                         .num_kv_heads = 1,
                         .block_size = kBlockSize,
                         .head_dim = sizes.latent_width(),
                         .value_dim = sizes.kv_lora_rank};
    };
    const int before = stride - sizes.latent_width();
    const auto untouched = cached;
    reference::latent_rope_and_cache({.sizes = sizes,
                                      .q = expected.data(),
                                      .q_stride = stride,
                                      .latents = expected.data() + before,
                                      .latent_stride = stride,
                                      .positions = positions.data(),
                                      .slot_mapping = slots.data(),
                                      .cos_sin = cos_sin.data(),
                                      .cache = view(cached.data()),
                                      .num_tokens = kTokens,
                                      .neighbours = neighbours});
    for_each_device([&](Device& device) {
      const DeviceTensor device_rows(device, rows), device_positions(device, positions), device_slots(device, slots);
      const DeviceTensor angles(device, cos_sin), memory(device, untouched);
      const auto rotate = [&](int first, int heads, int head_dim) {
        device.part_rotary_embedding({.qkv = {device_rows.as<float>() + first, Dtype::f32},
                                      .positions = device_positions.as<std::int32_t>(),
                                      .cos_sin = angles.as<float>(),
                                      .num_tokens = kTokens,
                                      .num_heads = heads,
                                      .head_dim = head_dim,
                                      .rotary_dim = sizes.qk_rope_head_dim,
                                      .neighbours = neighbours,
                                      .stride = stride});
      };
      rotate(sizes.qk_nope_head_dim, sizes.num_heads, sizes.qk_head_dim());
      rotate(before + sizes.kv_lora_rank, 1, sizes.qk_rope_head_dim);
      const Input latents{device_rows.as<float>() + before, Dtype::f32};
      device.reshape_and_cache({.k = latents,
                                .v = latents,
                                .kv_stride = stride,
                                .slot_mapping = device_slots.as<std::int64_t>(),
                                .cache = view(memory.as()),
                                .num_tokens = kTokens});
      const auto got = device_rows.read_numbers(Dtype::f32);
      for (std::size_t i = 0; i < got.size(); ++i) REQUIRE(std::abs(got[i] - expected[i]) <= 0x1p-21);
      const auto stored = memory.read_numbers(Dtype::bf16), wanted = widen(cached, Dtype::bf16);
      for (std::size_t i = 0; i < stored.size(); ++i) {
        if (std::isnan(wanted[i])) REQUIRE(std::isnan(stored[i]));
        if (!std::isnan(wanted[i]))
          REQUIRE(std::abs(stored[i] - wanted[i]) <= rounding(Dtype::bf16) * std::abs(wanted[i]) + 0x1p-21);
      }
    });
  }
}

}  // namespace dculab::kernels::gpu
