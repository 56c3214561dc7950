// Do F16, BF16 and FP8 round to nearest even and survive a round trip?
#include "kernels/number_format.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "tests/kernels/golden_tensors.hpp"
#include "tests/support/catch.hpp"

namespace dculab::kernels {
namespace {

struct Fp8Case {
  const char* name;
  Fp8Format format;
  float (*to_f32)(std::uint8_t);
  std::uint8_t (*from_f32)(float);
};
constexpr Fp8Case kFp8Cases[] = {{"e4m3", kFp8E4m3, f32_from_fp8_e4m3, fp8_e4m3_from_f32},
                                 {"e5m2", kFp8E5m2, f32_from_fp8_e5m2, fp8_e5m2_from_f32}};

// The finite values of the golden table that are not negative, ascending: the place is the code.
std::vector<double> finite_values(const Fp8Case& format) {
  const std::vector<float> table = GoldenTensors("fp8").read<float>(format.name);
  std::vector<double> values(table.begin(), table.begin() + 128);
  while (!std::isfinite(values.back())) values.pop_back();
  return values;
}

// Searches the table: nearest value, of two as near the one with the even code, the last when beyond.
std::uint8_t nearest(const std::vector<double>& values, float value) {
  const auto above = std::lower_bound(values.begin(), values.end(), std::abs(double{value}));
  std::ptrdiff_t code = above - values.begin();
  if (above == values.end()) {
    --code;
  } else if (code > 0) {
    const double up = *above - std::abs(double{value}), down = std::abs(double{value}) - *(above - 1);
    if (down < up || (down == up && code % 2 == 1)) --code;
  }
  return static_cast<std::uint8_t>(code | (std::signbit(value) ? 0x80 : 0));
}

// Every middle of two neighbours with both its F32 neighbours, then random values: half of them any finite bit
// pattern, half spread over the exponents of the format and a little beyond. Both signs.
std::vector<float> values_to_round(const std::vector<double>& table, std::size_t count) {
  std::vector<float> values;
  for (std::size_t i = 0; i + 1 < table.size(); ++i) {
    const auto middle = static_cast<float>((table[i] + table[i + 1]) / 2);
    for (const float value : {middle, std::nextafter(middle, 0.0F), std::nextafter(middle, INFINITY)}) {
      values.push_back(value);
      values.push_back(-value);
    }
  }
  std::mt19937 random(8);
  std::uniform_real_distribution<double> exponent(std::log2(table[1]) - 3, std::log2(table.back()) + 2);
  while (values.size() < count) {
    const float any = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (std::isfinite(any)) values.push_back(any);
    const auto near = static_cast<float>(std::exp2(exponent(random)));
    values.push_back(random() % 2 == 0 ? near : -near);
  }
  return values;
}

}  // namespace

TEST_CASE("every 16-bit pattern survives the way to F32 and back") {
  int changed = 0;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto pattern = static_cast<std::uint16_t>(bits);
    if (!std::isnan(f32_from_f16(pattern)) && f16_from_f32(f32_from_f16(pattern)) != pattern) ++changed;
    if (!std::isnan(f32_from_bf16(pattern)) && bf16_from_f32(f32_from_bf16(pattern)) != pattern) ++changed;
  }
  CHECK(changed == 0);
}

TEST_CASE("values between two F16 numbers go to the nearest, ties to the even one") {
  for (std::uint16_t bits = 0; bits < 0x7BFF; ++bits) {
    const float low = f32_from_f16(bits), high = f32_from_f16(static_cast<std::uint16_t>(bits + 1));
    const float middle = 0.5F * (low + high);
    const bool even = bits % 2 == 0;
    const bool right = f16_from_f32(middle) == (even ? bits : bits + 1) &&
                       f16_from_f32(std::nextafter(middle, low)) == bits &&
                       f16_from_f32(std::nextafter(middle, high)) == bits + 1;
    if (!right) FAIL("after F16 pattern " << bits);
  }
}

TEST_CASE("values between two BF16 numbers go to the nearest, ties to the even one") {
  for (std::uint16_t bits = 0x0080; bits < 0x7F7F; ++bits) {
    const float middle = std::bit_cast<float>((std::uint32_t{bits} << 16) | 0x8000U);
    const bool even = bits % 2 == 0;
    const bool right = bf16_from_f32(middle) == (even ? bits : bits + 1) &&
                       bf16_from_f32(std::nextafter(middle, 0.0F)) == bits &&
                       bf16_from_f32(std::nextafter(middle, INFINITY)) == bits + 1;
    if (!right) FAIL("after BF16 pattern " << bits);
  }
}

TEST_CASE("overflow, infinity, NaN and signs") {
  CHECK(f16_from_f32(65519.0F) == 0x7BFF);
  CHECK(f16_from_f32(65520.0F) == 0x7C00);
  CHECK(f16_from_f32(-1e10F) == 0xFC00);
  CHECK(f16_from_f32(-0.0F) == 0x8000);
  CHECK(std::isinf(f32_from_f16(0xFC00)));
  CHECK(std::isnan(f32_from_f16(f16_from_f32(std::numeric_limits<float>::quiet_NaN()))));
  CHECK(std::isnan(f32_from_bf16(bf16_from_f32(std::numeric_limits<float>::quiet_NaN()))));
  CHECK(bf16_from_f32(std::numeric_limits<float>::max()) == 0x7F80);
}

TEST_CASE("every FP8 code stands for the value torch and ml_dtypes give it, bit for bit") {
  for (const Fp8Case& format : kFp8Cases) {
    const std::vector<float> table = GoldenTensors("fp8").read<float>(format.name);
    REQUIRE(table.size() == 256);
    for (std::size_t code = 0; code < 256; ++code) {
      INFO(format.name << " code " << code);
      const float value = format.to_f32(static_cast<std::uint8_t>(code));
      if (std::isnan(table[code])) {
        CHECK(std::isnan(value));
      } else {
        CHECK(std::bit_cast<std::uint32_t>(value) == std::bit_cast<std::uint32_t>(table[code]));
        if (std::isfinite(value)) CHECK(format.from_f32(value) == code);
      }
    }
  }
}

TEST_CASE("a million values round to the nearest FP8 value, ties to even") {
  for (const Fp8Case& format : kFp8Cases) {
    const std::vector<double> table = finite_values(format);
    REQUIRE(table.size() == std::size_t{format.format.largest_finite} + 1);
    const std::vector<float> values = values_to_round(table, 1'000'000);
    REQUIRE(values.size() >= 1'000'000);
    std::size_t wrong = 0;
    float first_wrong = 0;
    for (const float value : values) {
      if (format.from_f32(value) != nearest(table, value) && wrong++ == 0) first_wrong = value;
    }
    INFO(format.name << ": the first is " << first_wrong);
    CHECK(wrong == 0);
  }
}

TEST_CASE("FP8 saturates, infinity too, and keeps NaN") {
  CHECK(fp8_e4m3_from_f32(464.0F) == 0x7E);  // halfway to what would be 480
  CHECK(fp8_e4m3_from_f32(-1e30F) == 0xFE);
  CHECK(fp8_e4m3_from_f32(INFINITY) == 0x7E);
  CHECK(fp8_e5m2_from_f32(61440.0F) == 0x7B);
  CHECK(fp8_e5m2_from_f32(-INFINITY) == 0xFB);
  CHECK(fp8_e4m3_from_f32(NAN) == 0x7F);
  CHECK(fp8_e4m3_from_f32(std::copysign(NAN, -1.0F)) == 0xFF);
  CHECK(std::isnan(f32_from_fp8_e5m2(fp8_e5m2_from_f32(NAN))));
  CHECK(f32_from_fp8_e4m3(0x7E) == 448.0F);
  CHECK(f32_from_fp8_e5m2(0x7B) == 57344.0F);
  CHECK(std::isinf(f32_from_fp8_e5m2(0xFC)));
}

TEST_CASE("conversions are constant expressions, so a GPU compiler can take them") {
  static_assert(fp8_e4m3_from_f32(1.0F) == 0x38 && f32_from_fp8_e4m3(0x38) == 1.0F);
  static_assert(fp8_e5m2_from_f32(-0x1p-16F) == 0x81 && f32_from_fp8_e5m2(0x81) == -0x1p-16F);
  static_assert(f16_from_f32(1.5F) == 0x3E00 && bf16_from_f32(1.5F) == 0x3FC0);
  SUCCEED();
}

}  // namespace dculab::kernels
