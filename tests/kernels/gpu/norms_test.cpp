// Do the GPU's norms agree with the reference?
#include <cmath>

#include "kernels/reference/reference_kernels.hpp"
#include "tests/kernels/gpu/device_under_test.hpp"
#include "tests/kernels/tensors.hpp"

namespace dculab::kernels::gpu {

TEST_CASE("GPU rms_norm agrees with the reference", "[gpu]") {
  const auto activation = GENERATE(Dtype::f32, Dtype::f16);
  const auto weight_dtype = GENERATE(Dtype::f32, Dtype::f16, Dtype::bf16);
  const auto width = GENERATE(1, 63, 256, 4099);
  const bool with_x = GENERATE(true, false);
  CAPTURE(name(activation), name(weight_dtype), width, with_x);
  constexpr int kTokens = 3;
  const auto count = static_cast<std::size_t>(kTokens * width);

  TensorSource source(7);
  const auto x = source.stored(count, activation);
  const auto residual = source.floats(count);
  const auto weight = source.stored(static_cast<std::size_t>(width), weight_dtype);

  auto expected_residual = residual;
  std::vector<float> expected(count);
  const auto wide_x = widen(x, activation);
  reference::rms_norm({.x = with_x ? wide_x.data() : nullptr,
                       .residual = expected_residual.data(),
                       .weight = {weight.data(), weight_dtype, width},
                       .out = expected.data(),
                       .num_tokens = kTokens,
                       .width = width,
                       .epsilon = 1e-5F});

  for_each_device([&](Device& device) {
    const DeviceTensor device_x(device, x), device_weight(device, weight), device_residual(device, residual);
    const DeviceTensor out(device, bytes_of(activation, count));
    device.rms_norm({.x = {with_x ? device_x.as() : nullptr, activation},
                     .residual = device_residual.as<float>(),
                     .weight = {device_weight.as(), weight_dtype},
                     .out = {out.as(), activation},
                     .num_tokens = kTokens,
                     .width = width,
                     .epsilon = 1e-5F});
    const auto got = out.read_numbers(activation);
    for (std::size_t i = 0; i < count; ++i)
      REQUIRE(std::abs(got[i] - expected[i]) <= (rounding(activation) + 8 * 0x1p-24) * std::abs(expected[i]) + 1e-7);
    CHECK(largest_difference(device_residual.read<float>(), expected_residual) == 0);
  });
}

}  // namespace dculab::kernels::gpu
