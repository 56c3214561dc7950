// Do the GPU products with FP8 weights agree with the reference on what values and scales stand for?
#include "core/error.hpp"
#include "tests/kernels/gpu/routed_tokens.hpp"

namespace dculab::kernels::gpu {
namespace {

// How a matrix of FP8 is scaled: 31 is one scale for all rows, or columns.
struct Scaled {
  int row_shift = 31, column_shift = 31;
};
constexpr Scaled kByTensor{}, kByRow{0, 31}, kByBlock{7, 7}, kBySmallBlock{3, 4};

// Matrices [rows, columns] in E4M3, one after the other, and what they stand for.
struct Fp8Matrices {
  std::vector<std::byte> values;
  std::vector<float> scales, wide;
  WeightScales layout;

  Fp8Matrices(TensorSource& source, int count, int rows, int columns, const Scaled& scaled) {
    layout.row_shift = scaled.row_shift, layout.column_shift = scaled.column_shift;
    layout.column_blocks = ((columns - 1) >> scaled.column_shift) + 1;
    const int row_blocks = ((rows - 1) >> scaled.row_shift) + 1;
    values = source.stored(static_cast<std::size_t>(count * rows * columns), Dtype::fp8_e4m3);
    scales = source.floats(static_cast<std::size_t>(count * row_blocks * layout.column_blocks));
    wide = widen(values, Dtype::fp8_e4m3);
    for (int matrix = 0, at = 0; matrix < count; ++matrix)
      for (int row = 0; row < rows; ++row)
        for (int column = 0; column < columns; ++column, ++at) {
          const int block = (matrix * row_blocks + (row >> scaled.row_shift)) * layout.column_blocks;
          wide[static_cast<std::size_t>(at)] *=
              scales[static_cast<std::size_t>(block + (column >> scaled.column_shift))];
        }
  }
};

struct OnDevice {
  DeviceTensor values, scales;
  WeightScales layout;

  OnDevice(Device& device, const Fp8Matrices& matrices)
      : values(device, matrices.values, OperandRole::weight),
        scales(device, matrices.scales, OperandRole::weight),
        layout(matrices.layout) {
    layout.values = scales.as<float>();
  }
};

// k products of size 1 summed in f32, a third of which have scales of up to 3; then one rounding.
void require_products(const std::vector<float>& got, const std::vector<float>& expected, int k, Dtype dtype) {
  const double of_sum = sum_tolerance(k + 1, 3.0);
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    REQUIRE(std::abs(got[i] - expected[i]) <= of_sum + rounding(dtype) * (std::abs(expected[i]) + of_sum));
}

}  // namespace

TEST_CASE("GPU matmul with FP8 weights agrees with the reference: a scale a tensor, a row or a block", "[gpu]") {
  const auto dtype = GENERATE(Dtype::f16, Dtype::f32);
  const auto scaled = GENERATE(kByTensor, kByRow, kByBlock, kBySmallBlock);
  const auto [m, n, k] = GENERATE(std::tuple{1, 40, 136}, std::tuple{3, 17, 1304}, std::tuple{8, 130, 264},
                                  std::tuple{33, 150, 136}, std::tuple{70, 20, 520});
  CAPTURE(name(dtype), scaled.row_shift, scaled.column_shift, m, n, k);
  TensorSource source(51);
  const auto x = source.stored(static_cast<std::size_t>(m * k), dtype);
  const Fp8Matrices w(source, 1, n, k, scaled);
  const auto wide_x = widen(x, dtype);
  std::vector<float> expected(static_cast<std::size_t>(m * n));
  MatmulArgs args{.x = wide_x.data(), .weights = {}, .y = expected.data(), .m = m, .k = k};
  args.weights[0] = {w.wide.data(), Dtype::f32, n};
  reference::matmul(args);
  for_each_device([&, m = m, n = n, k = k](Device& device) {
    const OnDevice weights(device, w);
    const DeviceTensor device_x(device, x), y(device, bytes_of(dtype, expected.size()));
    const DeviceTensor workspace(device, sizeof(float) * matmul_workspace(m, n, k));
    device.matmul({.x = {device_x.as(), dtype},
                   .w = {weights.values.as(), Dtype::fp8_e4m3},
                   .y = {y.as(), dtype},
                   .m = m,
                   .n = n,
                   .k = k,
                   .y_stride = n,
                   .workspace = workspace.as<float>(),
                   .scales = weights.layout});
    require_products(y.read_numbers(dtype), expected, k, dtype);
  });
}

TEST_CASE("GPU matmul with FP8 weights takes rows from the middle of a matrix", "[gpu]") {
  TensorSource source(52);
  constexpr int kRows = 60, kFirst = 22, kCount = 30, kIn = 264, kTokens = 2;
  const auto x = source.floats(kTokens * kIn);
  const Fp8Matrices w(source, 1, kRows, kIn, kBySmallBlock);
  std::vector<float> expected(kTokens * kCount);
  MatmulArgs args{.x = x.data(), .weights = {}, .y = expected.data(), .m = kTokens, .k = kIn};
  args.weights[0] = {w.wide.data() + kFirst * kIn, Dtype::f32, kCount};
  reference::matmul(args);
  for_each_device([&](Device& device) {
    const OnDevice weights(device, w);
    WeightScales scales = weights.layout;
    scales.first_row = kFirst;
    const DeviceTensor device_x(device, x), y(device, sizeof(float) * expected.size());
    device.matmul({.x = {device_x.as(), Dtype::f32},
                   .w = {weights.values.as<std::byte>() + kFirst * kIn, Dtype::fp8_e4m3},
                   .y = {y.as(), Dtype::f32},
                   .m = kTokens,
                   .n = kCount,
                   .k = kIn,
                   .y_stride = kCount,
                   .scales = scales});
    require_products(y.read_numbers(Dtype::f32), expected, kIn, Dtype::f32);
  });
}

TEST_CASE("GPU products of experts with FP8 weights agree with the reference", "[gpu]") {
  const auto dtype = GENERATE(Dtype::f16, Dtype::f32);
  const auto scaled = GENERATE(kByTensor, kByRow, kByBlock, kBySmallBlock);
  const int tokens = GENERATE(1, 9, 60);
  CAPTURE(name(dtype), scaled.row_shift, scaled.column_shift, tokens);
  constexpr int kExperts = 6, kPerToken = 2, kOut = 36, kIn = 152;
  TensorSource source(53);
  const RoutedTokens routed({.rule = {.num_experts = kExperts, .experts_per_token = kPerToken}, .num_tokens = tokens},
                            source);
  const auto x = source.stored(static_cast<std::size_t>(tokens * kIn), dtype);
  const Fp8Matrices w(source, kExperts, kOut, kIn, scaled);
  const auto wide_x = widen(x, dtype);
  std::vector<WeightView> views;
  for (int expert = 0; expert < kExperts; ++expert)
    views.push_back({w.wide.data() + static_cast<std::ptrdiff_t>(expert) * kOut * kIn, Dtype::f32, kOut});
  std::vector<float> expected(static_cast<std::size_t>(routed.num_rows() * kOut));
  ExpertMatmulArgs args;
  args.x = wide_x.data(), args.row_tokens = routed.row_tokens.data(), args.first_rows = routed.first_rows.data();
  args.weights[0] = views.data(), args.y = expected.data(), args.num_experts = kExperts, args.k = kIn;
  reference::expert_matmul(args);
  for_each_device([&](Device& device) {
    const DeviceChoices choices(device, routed, plan_expert_matmul(routed.num_rows(), kExperts, Dtype::fp8_e4m3));
    const OnDevice weights(device, w);
    const DeviceTensor device_x(device, x), y(device, bytes_of(dtype, expected.size()));
    device.expert_matmul({.x = {device_x.as(), dtype},
                          .w = {weights.values.as(), Dtype::fp8_e4m3},
                          .y = {y.as(), dtype},
                          .rows = choices.rows(true),
                          .x_rows = tokens,
                          .n = kOut,
                          .k = kIn,
                          .scales = weights.layout});
    require_products(y.read_numbers(dtype), expected, kIn, dtype);
  });
}

TEST_CASE("GPU absorbed products with FP8 weights agree with the reference", "[gpu]") {
  const auto dtype = GENERATE(Dtype::f16, Dtype::f32);
  const auto scaled = GENERATE(kByTensor, kByRow, kByBlock, kBySmallBlock);
  const int tokens = GENERATE(1, 11);
  CAPTURE(name(dtype), scaled.row_shift, scaled.column_shift, tokens);
  const LatentSizes sizes{3, 168, 40, 8, 24};
  TensorSource source(54);
  const int rows = sizes.num_heads * sizes.expanded_head_dim(), stride = sizes.num_heads * sizes.kv_lora_rank;
  const Fp8Matrices w(source, 1, rows, sizes.kv_lora_rank, scaled);
  const auto x = source.stored(static_cast<std::size_t>(tokens * stride), dtype);
  const auto wide_x = widen(x, dtype);
  std::vector<float> k(static_cast<std::size_t>(tokens * sizes.num_heads * sizes.latent_width()));
  std::vector<float> v(static_cast<std::size_t>(tokens * sizes.num_heads * sizes.v_head_dim));
  AbsorbArgs args{.sizes = sizes,
                  .kv_b_proj = {w.wide.data(), Dtype::f32, rows},
                  .x = wide_x.data(),
                  .x_stride = stride,
                  .y = k.data(),
                  .num_tokens = tokens};
  reference::absorb_k(args);
  args.y = v.data();
  reference::absorb_v(args);
  for_each_device([&](Device& device) {
    const OnDevice weights(device, w);
    const DeviceTensor device_x(device, x), got_k(device, bytes_of(dtype, k.size())),
        got_v(device, bytes_of(dtype, v.size()));
    Absorb absorb{.sizes = sizes,
                  .kv_b_proj = {weights.values.as(), Dtype::fp8_e4m3},
                  .scales = weights.layout,
                  .x = {device_x.as(), dtype},
                  .x_stride = stride,
                  .y = {got_k.as(), dtype},
                  .num_tokens = tokens};
    device.absorb_k(absorb);
    absorb.y.data = got_v.as();
    device.absorb_v(absorb);
    require_products(got_k.read_numbers(dtype), k, sizes.qk_nope_head_dim, dtype);
    require_products(got_v.read_numbers(dtype), v, sizes.kv_lora_rank, dtype);
  });
}

TEST_CASE("GPU products with FP8 weights need their scales", "[gpu]") {
  for_each_device([](Device& device) {
    CHECK_THROWS_WITH(device.matmul({.x = {}, .w = {nullptr, Dtype::fp8_e4m3}, .y = {}, .m = 1, .n = 8, .k = 16}),
                      ContainsSubstring("in FP8 have no GPU kernel without scales"));
  });
}

}  // namespace dculab::kernels::gpu
