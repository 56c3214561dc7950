// Do the GPU's softmax, argmax and top-k agree with the reference?
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "core/error.hpp"
#include "kernels/reference/reference_kernels.hpp"
#include "tests/kernels/gpu/device_under_test.hpp"
#include "tests/kernels/tensors.hpp"

namespace dculab::kernels::gpu {
namespace {

constexpr int kLlamaVocab = 128256;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<std::byte> store_all(const std::vector<float>& values, Dtype dtype) {
  std::vector<std::byte> bytes(bytes_of(dtype, values.size()));
  for (std::size_t i = 0; i < values.size(); ++i) reference::store_value(bytes.data(), dtype, i, values[i]);
  return bytes;
}

// Rows of logits, each hard in its own way.
struct HardRow {
  std::string what;
  std::vector<float> values;
};

std::vector<HardRow> hard_rows(int width) {
  const auto count = static_cast<std::size_t>(width);
  TensorSource source(5);
  HardRow random{"random", source.floats(count, 3.0F)};
  HardRow ties{"ties", random.values};
  for (float& value : ties.values) value = std::round(value);
  HardRow ascending{"ascending", random.values}, descending{"descending", random.values};
  std::sort(ascending.values.begin(), ascending.values.end());
  std::sort(descending.values.rbegin(), descending.values.rend());
  HardRow holes{"NaN and infinities", random.values};
  for (std::size_t i = 0; i < count; ++i)
    if (i % 3 != 1) holes.values[i] = i % 2 == 0 ? kNan : i % 5 == 0 ? kInfinity : -kInfinity;
  HardRow zeros{"zeros of both signs", std::vector<float>(count, -0.0F)};
  for (std::size_t i = 1; i < count; i += 2) zeros.values[i] = 0.0F;
  HardRow nothing{"NaN", std::vector<float>(count, kNan)};
  HardRow least{"-infinity", std::vector<float>(count, -kInfinity)};
  return {random, ties, ascending, descending, holes, zeros, nothing, least};
}

// Equal, where NaN is NaN and -0 is not +0.
bool same(float a, float b) {
  return std::isnan(a) ? std::isnan(b) : std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

}  // namespace

TEST_CASE("GPU softmax agrees with the reference", "[gpu]") {
  const auto in_dtype = GENERATE(Dtype::f32, Dtype::f16);
  const auto out_dtype = GENERATE(Dtype::f32, Dtype::f16);
  const auto width = GENERATE(1, 7, 63, 1025, 8200, kLlamaVocab);
  const auto temperature = GENERATE(1.0F, 0.3F);
  CAPTURE(name(in_dtype), name(out_dtype), width, temperature);
  const int rows = width == kLlamaVocab ? 1 : 3;
  const auto count = static_cast<std::size_t>(rows * width);
  TensorSource source(6);
  auto logits = source.floats(count, 4.0F);
  for (std::size_t i = 1; i < count; i += 5) logits[i] = -kInfinity;  // masked; not the first of a row
  for (int row = 0; row < rows; ++row) logits[static_cast<std::size_t>(row * width)] = -3;
  const auto x = store_all(logits, in_dtype);
  const auto wide = widen(x, in_dtype);
  std::vector<float> expected(count);
  reference::softmax({wide.data(), expected.data(), rows, width, temperature});

  for_each_device([&](Device& device) {
    const DeviceTensor device_x(device, x), out(device, bytes_of(out_dtype, count));
    device.softmax({.x = {device_x.as(), in_dtype},
                    .out = {out.as(), out_dtype},
                    .rows = rows,
                    .width = width,
                    .temperature = temperature});
    const auto got = out.read_numbers(out_dtype);
    double largest = 0;  // of the row
    for (std::size_t i = 0; i < count; ++i) {
      const auto first = wide.begin() + static_cast<std::ptrdiff_t>(i);
      if (i % static_cast<std::size_t>(width) == 0) largest = *std::max_element(first, first + width);
      const double argument = wide[i] == -kInfinity ? 0 : (largest - wide[i]) / temperature;
      // A lane adds up width / 1024 numbers, ten steps of halving follow; each e^x: 2 ulp and two of its argument.
      const double relative = rounding(out_dtype) + (width / 1024 + 10 + 8 + 4 * argument) * 0x1p-24;
      REQUIRE(std::abs(got[i] - expected[i]) <= relative * expected[i] + (out_dtype == Dtype::f32 ? 1e-38 : 0x1p-25));
    }
  });
}

TEST_CASE("GPU argmax is that of the reference", "[gpu]") {
  const auto dtype = GENERATE(Dtype::f32, Dtype::f16);
  const auto width = GENERATE(1, 7, 64, 1023, 8200, kLlamaVocab);
  std::vector<float> logits;
  const auto hard = hard_rows(width);
  for (const HardRow& row : hard) logits.insert(logits.end(), row.values.begin(), row.values.end());
  const auto x = store_all(logits, dtype);
  const auto wide = widen(x, dtype);
  std::vector<std::int32_t> expected(hard.size());
  reference::argmax({wide.data(), expected.data(), static_cast<int>(hard.size()), width});

  for_each_device([&](Device& device) {
    const DeviceTensor device_x(device, x), out(device, hard.size() * sizeof(std::int32_t));
    device.argmax({.x = {device_x.as(), dtype},
                   .out = out.as<std::int32_t>(),
                   .rows = static_cast<int>(hard.size()),
                   .width = width});
    const auto got = out.read<std::int32_t>();
    for (std::size_t row = 0; row < hard.size(); ++row) {
      CAPTURE(name(dtype), width, hard[row].what);
      CHECK(got[row] == expected[row]);
    }
  });
}

TEST_CASE("GPU top-k is that of the reference", "[gpu]") {
  const auto dtype = GENERATE(Dtype::f32, Dtype::f16);
  const auto [width, k] = GENERATE(std::pair(1, 1), std::pair(7, 7), std::pair(63, 5), std::pair(1024, 64),
                                   std::pair(2049, 1), std::pair(8200, 64), std::pair(kLlamaVocab, 50));
  std::vector<float> logits;
  const auto hard = hard_rows(width);
  for (const HardRow& row : hard) logits.insert(logits.end(), row.values.begin(), row.values.end());
  const auto x = store_all(logits, dtype);
  const auto wide = widen(x, dtype);
  const int rows = static_cast<int>(hard.size());
  const auto count = hard.size() * static_cast<std::size_t>(k);
  std::vector<float> values(count);
  std::vector<std::int32_t> indices(count);
  reference::top_k({wide.data(), values.data(), indices.data(), rows, width, k});

  for_each_device([&, width = width, k = k](Device& device) {
    const DeviceTensor device_x(device, x), got_values(device, count * 4), got_indices(device, count * 4);
    device.top_k({.x = {device_x.as(), dtype},
                  .values = got_values.as<float>(),
                  .indices = got_indices.as<std::int32_t>(),
                  .rows = rows,
                  .width = width,
                  .k = k});
    CAPTURE(name(dtype), width, k);
    CHECK(got_indices.read<std::int32_t>() == indices);
    CHECK(std::ranges::equal(got_values.read<float>(), values, same));
  });
}

TEST_CASE("GPU top-k refuses more than 64, and more than there are", "[gpu]") {
  for_each_device([](Device& device) {
    CHECK_THROWS_WITH(device.top_k({.x = {}, .rows = 1, .width = 100, .k = 65}), ContainsSubstring("k is 1 to 64"));
    CHECK_THROWS_AS(device.top_k({.x = {}, .rows = 1, .width = 3, .k = 4}), InputError);
    CHECK_THROWS_AS(device.top_k({.x = {}, .rows = 1, .width = 3, .k = 0}), InputError);
  });
}

}  // namespace dculab::kernels::gpu
