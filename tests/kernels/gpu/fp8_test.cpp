// Do GPU kernels read and write FP8 as the formats' specification says?
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "kernels/gpu/numbers.hpp"
#include "tests/kernels/gpu/device_under_test.hpp"

namespace dculab::kernels::gpu {
namespace {

// The values of the 256 codes, from the formula of the specification: (1 + m / 2^bits) * 2^(e - bias), and m / 2^bits *
// 2^(1 - bias) where e is 0.
std::vector<double> fp8_values(Dtype dtype) {
  const int mantissa_bits = dtype == Dtype::fp8_e4m3 ? 3 : 2, bias = dtype == Dtype::fp8_e4m3 ? 7 : 15;
  std::vector<double> values(256);
  for (int code = 0; code < 256; ++code) {
    const int exponent = (code & 0x7F) >> mantissa_bits, mantissa = code & ((1 << mantissa_bits) - 1);
    const double fraction = static_cast<double>(mantissa) / (1 << mantissa_bits);
    double value = exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias);
    if (dtype == Dtype::fp8_e4m3 && (code & 0x7F) == 0x7F) value = NAN;
    if (dtype == Dtype::fp8_e5m2 && exponent == 31) value = mantissa == 0 ? INFINITY : NAN;
    values[static_cast<std::size_t>(code)] = code >= 128 ? -value : value;
  }
  return values;
}

int largest_finite_code(Dtype dtype) { return dtype == Dtype::fp8_e4m3 ? 0x7E : 0x7B; }

// The nearest code by search: of two equally near ones the even; what is beyond the largest finite value becomes it.
std::uint8_t nearest_code(Dtype dtype, const std::vector<double>& values, float value) {
  const int sign = std::signbit(value) ? 0x80 : 0;
  if (std::isnan(value)) return static_cast<std::uint8_t>(sign | (dtype == Dtype::fp8_e4m3 ? 0x7F : 0x7E));
  const double magnitude = std::abs(double{value});
  const auto first = values.begin(), last = first + largest_finite_code(dtype);
  const auto above = std::lower_bound(first, last + 1, magnitude);
  auto code = static_cast<int>(std::min(above, last) - first);
  if (code > 0 && above <= last) {
    const double up = values[static_cast<std::size_t>(code)] - magnitude;
    const double down = magnitude - values[static_cast<std::size_t>(code - 1)];
    if (down < up || (down == up && code % 2 == 1)) --code;
  }
  return static_cast<std::uint8_t>(sign | code);
}

// One token per 1024 values of K and V, which lie in the cache as they lie here.
KvCacheView rows_of_values(Dtype dtype, std::size_t count) {
  KvCacheView view;
  view.dtype = dtype;
  view.num_blocks = static_cast<int>(count / 1024), view.num_kv_heads = 1, view.block_size = 1, view.head_dim = 1024;
  return view;
}

std::vector<std::uint8_t> stored_codes(Device& device, Dtype dtype, std::vector<float> values) {
  values.resize((values.size() + 1023) / 1024 * 1024);
  const KvCacheView shape = rows_of_values(dtype, values.size());
  std::vector<std::int64_t> slots(static_cast<std::size_t>(shape.num_blocks));
  std::iota(slots.begin(), slots.end(), 0);
  const DeviceTensor k(device, values.size()), v(device, values.size()), source(device, values), slot(device, slots);
  device.reshape_and_cache({.k = {source.as(), Dtype::f32},
                            .v = {source.as(), Dtype::f32},
                            .kv_stride = 1024,
                            .slot_mapping = slot.as<std::int64_t>(),
                            .cache = on_device(shape, k, v),
                            .num_tokens = shape.num_blocks});
  auto codes = k.read<std::uint8_t>();
  REQUIRE(codes == v.read<std::uint8_t>());
  return codes;
}

// 10^6 values of every size that a format tells apart, all codes, all midpoints and their neighbours.
std::vector<float> values_to_round(Dtype dtype) {
  std::vector<float> values;
  const auto codes = fp8_values(dtype);
  for (int code = 0; code <= largest_finite_code(dtype); ++code) {
    const double value = codes[static_cast<std::size_t>(code)];
    const double next = code == largest_finite_code(dtype) ? 2 * value - codes[static_cast<std::size_t>(code - 1)]
                                                           : codes[static_cast<std::size_t>(code + 1)];
    const auto middle = static_cast<float>((value + next) / 2);
    for (const float each :
         {static_cast<float>(value), middle, std::nextafter(middle, 0.0F), std::nextafter(middle, INFINITY)}) {
      values.push_back(each);
      values.push_back(-each);
    }
  }
  for (const float each : {std::numeric_limits<float>::denorm_min(), 0x1p-127F, 1e6F, 3e38F, INFINITY, NAN}) {
    values.push_back(each);
    values.push_back(-each);
  }
  std::mt19937 random(5);
  std::uniform_real_distribution<float> exponent(-20.0F, 18.0F), sign(-1.0F, 1.0F);
  while (values.size() < 1'000'000) values.push_back(std::copysign(std::exp2(exponent(random)), sign(random)));
  return values;
}

}  // namespace

TEST_CASE("FP8: every code is read as its value") {
  using namespace host_build;
  const auto check = []<typename T>(T, Dtype dtype) {
    const auto expected = fp8_values(dtype);
    for (std::size_t code = 0; code < 256; ++code) {
      const float got = to_float(T{static_cast<std::uint8_t>(code)});
      CAPTURE(name(dtype), code);
      REQUIRE(std::isnan(got) == std::isnan(expected[code]));
      if (!std::isnan(got)) REQUIRE(double{got} == expected[code]);
      REQUIRE(std::signbit(got) == (code >= 128));
    }
  };
  check(Fp8E4M3{}, Dtype::fp8_e4m3);
  check(Fp8E5M2{}, Dtype::fp8_e5m2);
}

TEST_CASE("FP8 pairs become the halves of their values") {
  using namespace host_build;
  const auto check = []<typename T>(T) {
    for (std::uint32_t low = 0; low < 256; ++low) {
      const std::uint32_t high = 255 - low;
      const HalfPair pair = to_half_pair<T>(low | high << 8 | 0xABCD0000U);
      for (const auto& [half, code] : {std::pair{low_half(pair), low}, std::pair{high_half(pair), high}}) {
        const float expected = to_float(T{static_cast<std::uint8_t>(code)});
        CAPTURE(code);
        REQUIRE(std::isnan(to_float(half)) == std::isnan(expected));
        if (!std::isnan(expected))
          REQUIRE(std::bit_cast<std::uint32_t>(to_float(half)) == std::bit_cast<std::uint32_t>(expected));
      }
    }
  };
  check(Fp8E4M3{});
  check(Fp8E5M2{});
}

TEST_CASE("GPU FP8: every number is stored as the nearest code", "[gpu]") {
  const auto dtype = GENERATE(Dtype::fp8_e4m3, Dtype::fp8_e5m2);
  CAPTURE(name(dtype));
  const auto table = fp8_values(dtype);
  const auto values = values_to_round(dtype);
  std::vector<std::uint8_t> expected;
  for (const float value : values) expected.push_back(nearest_code(dtype, table, value));
  for_each_device([&](Device& device) {
    auto got = stored_codes(device, dtype, values);
    got.resize(values.size());
    const auto is_nan = [&](std::uint8_t code) { return std::isnan(table[code]); };
    const auto [wrong, right] = std::mismatch(
        got.begin(), got.end(), expected.begin(),
        [&](std::uint8_t code, std::uint8_t wanted) { return code == wanted || (is_nan(code) && is_nan(wanted)); });
    if (wrong != got.end()) FAIL("of " << values[static_cast<std::size_t>(wrong - got.begin())]);
    SUCCEED();
  });
}

}  // namespace dculab::kernels::gpu
