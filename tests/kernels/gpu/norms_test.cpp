// Do the GPU's norms agree with the reference?
#include <cmath>

#include "core/error.hpp"
#include "kernels/reference/reference_kernels.hpp"
#include "tests/kernels/gpu/device_under_test.hpp"
#include "tests/kernels/tensors.hpp"

namespace dculab::kernels::gpu {

TEST_CASE("GPU rms_norm agrees with the reference", "[gpu]") {
  const auto activation = GENERATE(Dtype::f32, Dtype::f16);
  const auto weight_dtype = GENERATE(Dtype::f32, Dtype::f16, Dtype::bf16);
  const auto width = GENERATE(1, 63, 264, 4096, 4099);
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

TEST_CASE("GPU layer_norm agrees with the reference", "[gpu]") {
  const auto activation = GENERATE(Dtype::f32, Dtype::f16);
  const auto weight_dtype = GENERATE(Dtype::f32, Dtype::f16, Dtype::bf16);
  const auto width = GENERATE(1, 63, 264, 4096, 4099);
  const bool with_bias = GENERATE(true, false);
  CAPTURE(name(activation), name(weight_dtype), width, with_bias);
  constexpr int kTokens = 3;
  constexpr float kMean = 20;  // far from zero: a variance of the differences only
  const auto count = static_cast<std::size_t>(kTokens * width);

  TensorSource source(8);
  auto x = source.stored(count, activation);
  for (std::size_t i = 0; i < count; ++i)
    reference::store_value(x.data(), activation, i, reference::load_value(x.data(), activation, i) + kMean);
  const auto weight = source.stored(static_cast<std::size_t>(width), weight_dtype);
  const auto bias = source.stored(static_cast<std::size_t>(width), weight_dtype);
  const auto wide_x = widen(x, activation), wide_weight = widen(weight, weight_dtype);
  const auto wide_bias = widen(bias, weight_dtype);
  std::vector<float> expected(count);
  reference::layer_norm({.x = wide_x.data(),
                         .weight = wide_weight.data(),
                         .bias = with_bias ? wide_bias.data() : nullptr,
                         .out = expected.data(),
                         .num_tokens = kTokens,
                         .width = width,
                         .epsilon = 1e-5F});

  // The mean is a sum of width / 256 steps in a lane and eight of halving; its error, times the factor, is an error
  // of every normalised value. The factor's own error is relative.
  const double steps = width / 256 + 8 + 4;
  const double factor = width == 1 ? 1 / std::sqrt(1e-5) : 1.5;  // samples of a standard deviation of one
  for_each_device([&](Device& device) {
    const DeviceTensor device_x(device, x), device_weight(device, weight), device_bias(device, bias);
    const DeviceTensor out(device, bytes_of(activation, count));
    device.layer_norm({.x = {device_x.as(), activation},
                       .weight = {device_weight.as(), weight_dtype},
                       .bias = {with_bias ? device_bias.as() : nullptr, weight_dtype},
                       .out = {out.as(), activation},
                       .num_tokens = kTokens,
                       .width = width,
                       .epsilon = 1e-5F,
                       .residual = nullptr,
                       .added = {}});
    const auto got = out.read_numbers(activation);
    for (std::size_t i = 0; i < count; ++i) {
      const auto column = i % static_cast<std::size_t>(width);
      const double normalised = std::abs(expected[i] - (with_bias ? wide_bias[column] : 0.0F));
      const double of_mean = steps * 0x1p-24 * kMean * factor * std::abs(wide_weight[column]);
      const double tolerance = of_mean + (steps + 8) * 0x1p-24 * normalised +
                               (rounding(activation) + 0x1p-24) * std::abs(expected[i]) + 0x1p-25;
      REQUIRE(std::abs(got[i] - expected[i]) <= tolerance);
    }
  });
}

TEST_CASE("GPU layer_norm adds to the residual what is given, and norms that, in place too", "[gpu]") {
  const auto activation = GENERATE(Dtype::f32, Dtype::f16);
  const auto width = GENERATE(1, 63, 264, 4099);
  const int num_added = GENERATE(0, 1, 2);
  const bool in_place = GENERATE(false, true);
  CAPTURE(name(activation), width, num_added, in_place);
  constexpr int kTokens = 2;
  const auto count = static_cast<std::size_t>(kTokens * width);

  TensorSource source(9);
  const auto residual = source.floats(count);
  const auto first = source.stored(count, activation), second = source.stored(count, activation);
  const auto weight = source.floats(static_cast<std::size_t>(width));
  const auto wide_first = widen(first, activation), wide_second = widen(second, activation);
  auto expected_residual = residual;
  std::vector<float> expected(count);
  reference::layer_norm(
      {.weight = weight.data(),
       .out = expected.data(),
       .num_tokens = kTokens,
       .width = width,
       .residual = expected_residual.data(),
       .added = {num_added > 0 ? wide_first.data() : nullptr, num_added > 1 ? wide_second.data() : nullptr}});

  const Dtype out_dtype = in_place ? Dtype::f32 : activation;
  const double steps = width / 256 + 8 + 4;  // as above, about a mean near zero
  const double factor = width == 1 ? 1 / std::sqrt(1e-5) : 1.5;
  for_each_device([&](Device& device) {
    const DeviceTensor device_first(device, first), device_second(device, second);
    const DeviceTensor device_residual(device, residual), device_weight(device, weight);
    const DeviceTensor apart(device, bytes_of(out_dtype, count));
    const DeviceTensor& out = in_place ? device_residual : apart;
    device.layer_norm({.x = {nullptr, Dtype::f32},
                       .weight = {device_weight.as(), Dtype::f32},
                       .bias = {},
                       .out = {out.as(), out_dtype},
                       .num_tokens = kTokens,
                       .width = width,
                       .residual = device_residual.as<float>(),
                       .added = {{num_added > 0 ? device_first.as() : nullptr, activation},
                                 {num_added > 1 ? device_second.as() : nullptr, activation}}});
    const auto got = out.read_numbers(out_dtype);
    for (std::size_t i = 0; i < count; ++i) {
      const double of_mean = steps * 0x1p-24 * factor * std::abs(weight[i % static_cast<std::size_t>(width)]);
      REQUIRE(std::abs(got[i] - expected[i]) <=
              of_mean + (rounding(out_dtype) + (2 * steps + 8) * 0x1p-24) * std::abs(expected[i]) + 0x1p-25);
    }
    if (!in_place) CHECK(largest_difference(device_residual.read<float>(), expected_residual) == 0);
  });
}

TEST_CASE("GPU norms refuse formats that no kernel is compiled for", "[gpu]") {
  for_each_device([](Device& device) {
    CHECK_THROWS_WITH(device.rms_norm({.x = {nullptr, Dtype::bf16}, .weight = {}, .out = {}}),
                      ContainsSubstring("f32, f16"));
    CHECK_THROWS_AS(device.layer_norm({.x = {}, .weight = {nullptr, Dtype::int8}, .bias = {}, .out = {}, .added = {}}),
                    InputError);
  });
}

}  // namespace dculab::kernels::gpu
