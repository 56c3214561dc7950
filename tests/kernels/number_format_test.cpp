// Do F16 and BF16 round to nearest even and survive a round trip?
#include "kernels/number_format.hpp"

#include <cmath>
#include <limits>

#include "tests/support/catch.hpp"

namespace dculab::kernels {

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

}  // namespace dculab::kernels
