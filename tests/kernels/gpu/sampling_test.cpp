// Does the GPU's top-k agree with the reference?
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
