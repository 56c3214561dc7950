// Do the GPU's embedding, rotary embedding, SiLU and GELU agree with the reference?
#include <cmath>
#include <numbers>

#include "core/error.hpp"
#include "kernels/reference/reference_kernels.hpp"
#include "tests/kernels/gpu/device_under_test.hpp"
#include "tests/kernels/tensors.hpp"

namespace dculab::kernels::gpu {
namespace {

// As the format stores it.
float stored_as(Dtype dtype, float value) {
  float bytes = 0;
  reference::store_value(&bytes, dtype, 0, value);
  return static_cast<float>(reference::load_value(&bytes, dtype, 0));
}

}  // namespace

TEST_CASE("GPU embedding agrees with the reference", "[gpu]") {
  const auto table_dtype = GENERATE(Dtype::f32, Dtype::f16, Dtype::bf16);
  const auto out_dtype = GENERATE(Dtype::f32, Dtype::f16);
  const auto width = GENERATE(1, 63, 256, 2050, 4096);
  CAPTURE(name(table_dtype), name(out_dtype), width);
  constexpr int kVocab = 11;
  const std::vector<std::int32_t> tokens = {10, 0, 3, 3};
  TensorSource source(1);
  const auto table = source.stored(static_cast<std::size_t>(kVocab * width), table_dtype);
  std::vector<float> expected(tokens.size() * static_cast<std::size_t>(width));
  const int num_tokens = static_cast<int>(tokens.size());
  reference::embedding({tokens.data(), {table.data(), table_dtype, kVocab}, expected.data(), num_tokens, width});
  for (float& value : expected) value = stored_as(out_dtype, value);

  for_each_device([&](Device& device) {
    const DeviceTensor device_tokens(device, tokens), device_table(device, table);
    const DeviceTensor out(device, bytes_of(out_dtype, expected.size()));
    device.embedding({.token_ids = device_tokens.as<std::int32_t>(),
                      .table = {device_table.as(), table_dtype},
                      .out = {out.as(), out_dtype},
                      .num_tokens = num_tokens,
                      .width = width});
    CHECK(out.read_numbers(out_dtype) == expected);
  });
}

TEST_CASE("GPU rotary embedding agrees with the reference", "[gpu]") {
  struct Heads {
    int query, kv, size;
  };
  const auto dtype = GENERATE(Dtype::f32, Dtype::f16);
  const auto heads = GENERATE(Heads{1, 1, 2}, Heads{3, 1, 20}, Heads{8, 2, 64}, Heads{5, 5, 80}, Heads{33, 1, 128});
  CAPTURE(name(dtype), heads.query, heads.kv, heads.size);
  const std::vector<std::int32_t> positions = {0, 17, 5};
  constexpr int kMaxPosition = 18;
  const int num_tokens = static_cast<int>(positions.size());
  const int row = (heads.query + 2 * heads.kv) * heads.size;
  TensorSource source(2);
  const auto qkv = source.stored(static_cast<std::size_t>(num_tokens * row), dtype);
  std::vector<float> cos_sin(static_cast<std::size_t>(kMaxPosition * heads.size));
  for (int position = 0; position < kMaxPosition; ++position)
    for (int i = 0; i < heads.size / 2; ++i) {
      const double angle = position * std::pow(10000.0, -2.0 * i / heads.size);
      float* const at = cos_sin.data() + position * heads.size + i;
      at[0] = static_cast<float>(std::cos(angle));
      at[heads.size / 2] = static_cast<float>(std::sin(angle));
    }

  const std::vector<std::int64_t> slots(positions.size(), -1);  // only the rotation is compared
  const auto wide = widen(qkv, dtype);
  auto expected = wide;
  reference::rope_and_cache({.qkv = expected.data(),
                             .positions = positions.data(),
                             .slot_mapping = slots.data(),
                             .cos_sin = cos_sin.data(),
                             .cache = {.num_kv_heads = heads.kv, .block_size = 1, .head_dim = heads.size},
                             .num_tokens = num_tokens,
                             .num_heads = heads.query});

  for_each_device([&](Device& device) {
    const DeviceTensor out(device, qkv), device_positions(device, positions), device_cos_sin(device, cos_sin);
    device.rotary_embedding({.qkv = {out.as(), dtype},
                             .positions = device_positions.as<std::int32_t>(),
                             .cos_sin = device_cos_sin.as<float>(),
                             .num_tokens = num_tokens,
                             .num_heads = heads.query,
                             .num_kv_heads = heads.kv,
                             .head_dim = heads.size});
    const auto got = out.read_numbers(dtype);
    for (std::size_t i = 0; i < got.size(); ++i) {
      // Two products and their sum, each term at most 6 standard deviations large.
      const double tolerance = rounding(dtype) * std::abs(expected[i]) + 3 * kUlp * 2 * 6 + smallest_step(dtype);
      REQUIRE(std::abs(got[i] - expected[i]) <= tolerance);
    }
  });
}

TEST_CASE("GPU SiLU and multiply agrees with the reference", "[gpu]") {
  const auto in_dtype = GENERATE(Dtype::f32, Dtype::f16);
  const auto out_dtype = GENERATE(Dtype::f32, Dtype::f16);
  const auto width = GENERATE(1, 65, 2048, 2056, 4099);
  CAPTURE(name(in_dtype), name(out_dtype), width);
  constexpr int kTokens = 3;
  const auto count = static_cast<std::size_t>(kTokens * width);
  TensorSource source(3);
  const auto gate_up = source.stored(2 * count, in_dtype, 4.0F);
  const auto wide = widen(gate_up, in_dtype);
  std::vector<float> expected(count);
  reference::silu_mul({wide.data(), expected.data(), kTokens, width});

  for_each_device([&](Device& device) {
    const DeviceTensor device_gate_up(device, gate_up), out(device, bytes_of(out_dtype, count));
    device.silu_and_mul({.gate_up = {device_gate_up.as(), in_dtype},
                         .out = {out.as(), out_dtype},
                         .num_tokens = kTokens,
                         .width = width});
    const auto got = out.read_numbers(out_dtype);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t token = i / static_cast<std::size_t>(width);
      const double gate = wide[i + token * static_cast<std::size_t>(width)];
      // e^-gate: 2 ulp and that of its argument; then a sum, a quotient and a product.
      const double relative = rounding(out_dtype) + (8 + 2 * std::abs(gate)) * kUlp;
      REQUIRE(std::abs(got[i] - expected[i]) <= relative * std::abs(expected[i]) + smallest_step(out_dtype));
    }
  });
}

TEST_CASE("GPU GELU agrees with the reference", "[gpu]") {
  const auto in_dtype = GENERATE(Dtype::f32, Dtype::f16);
  const auto out_dtype = GENERATE(Dtype::f32, Dtype::f16);
  const auto kind = GENERATE(GeluKind::erf, GeluKind::tanh);
  const std::size_t count = GENERATE(1, 7, 2048, 2049, 6151);
  CAPTURE(name(in_dtype), name(out_dtype), static_cast<int>(kind), count);
  TensorSource source(4);
  const auto x = source.stored(count, in_dtype, 3.0F);
  const auto wide = widen(x, in_dtype);
  std::vector<float> expected(count);
  reference::gelu({wide.data(), expected.data(), static_cast<std::int64_t>(count), kind});

  for_each_device([&](Device& device) {
    const DeviceTensor device_x(device, x), out(device, bytes_of(out_dtype, count));
    device.gelu({.x = {device_x.as(), in_dtype},
                 .out = {out.as(), out_dtype},
                 .count = static_cast<std::int64_t>(count),
                 .kind = kind});
    const auto got = out.read_numbers(out_dtype);
    for (std::size_t i = 0; i < count; ++i) {
      // A relative error d of the argument is one of 2 a^2 d = x^2 d of erfc(a), and of 2 a d of e^-2a.
      const double value = std::abs(double{wide[i]});
      const double angle = std::sqrt(2 / std::numbers::pi) * (value + 0.044715 * value * value * value);
      const double argument = kind == GeluKind::erf ? 2 * value * value : 2 * angle * 4;
      const double relative = rounding(out_dtype) + (8 + argument) * kUlp;
      // f32: e^-2a overflows, and the result is 0, from where it would be x e^-88.
      const double absolute = std::max(smallest_step(out_dtype), value * std::exp(-88.0));
      REQUIRE(std::abs(got[i] - expected[i]) <= relative * std::abs(expected[i]) + absolute);
    }
  });
}

TEST_CASE("GPU layers refuse formats that no kernel is compiled for", "[gpu]") {
  for_each_device([](Device& device) {
    CHECK_THROWS_WITH(device.silu_and_mul({.gate_up = {nullptr, Dtype::bf16}, .out = {}}),
                      ContainsSubstring("bf16") && ContainsSubstring("f32, f16"));
    CHECK_THROWS_AS(device.embedding({.table = {nullptr, Dtype::fp8_e4m3}, .out = {}}), InputError);
    CHECK_THROWS_AS(device.gelu({.x = {}, .out = {nullptr, Dtype::bf16}}), InputError);
    CHECK_THROWS_WITH(device.rotary_embedding({.qkv = {}, .num_heads = 1, .num_kv_heads = 1, .head_dim = 5}),
                      ContainsSubstring("heads of 5"));
  });
}

}  // namespace dculab::kernels::gpu
