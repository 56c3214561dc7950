// Physical quantities as types, so that a bare double is never mistaken for a time.
//
// GB = 1e9 bytes and GiB = 2^30 bytes. One multiply-add counts as 2 FLOP, everywhere.
#pragma once

#include <compare>

namespace dculab {

// A double with a dimension: bytes^B * seconds^S * flop^F * cycles^C * joules^J.
template <int B, int S, int F, int C, int J = 0>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(double value) : value_(value) {}

  // The bare number, in bytes, seconds, FLOP, cycles and joules.
  [[nodiscard]] constexpr double value() const { return value_; }

  constexpr Quantity& operator+=(Quantity other) {
    value_ += other.value_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    value_ -= other.value_;
    return *this;
  }
  constexpr Quantity& operator*=(double factor) {
    value_ *= factor;
    return *this;
  }

  friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity(a.value_ + b.value_); }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity(a.value_ - b.value_); }
  friend constexpr Quantity operator*(Quantity a, double b) { return Quantity(a.value_ * b); }
  friend constexpr Quantity operator*(double a, Quantity b) { return Quantity(a * b.value_); }
  friend constexpr Quantity operator/(Quantity a, double b) { return Quantity(a.value_ / b); }
  friend constexpr auto operator<=>(Quantity, Quantity) = default;

 private:
  double value_ = 0;
};

namespace detail {
// A quantity whose dimensions all cancel is a plain number.
template <int B, int S, int F, int C, int J>
struct Simplified {
  using type = Quantity<B, S, F, C, J>;
};
template <>
struct Simplified<0, 0, 0, 0, 0> {
  using type = double;
};
}  // namespace detail

template <int B1, int S1, int F1, int C1, int J1, int B2, int S2, int F2, int C2, int J2>
constexpr auto operator*(Quantity<B1, S1, F1, C1, J1> a, Quantity<B2, S2, F2, C2, J2> b) {
  return typename detail::Simplified<B1 + B2, S1 + S2, F1 + F2, C1 + C2, J1 + J2>::type(a.value() * b.value());
}

template <int B1, int S1, int F1, int C1, int J1, int B2, int S2, int F2, int C2, int J2>
constexpr auto operator/(Quantity<B1, S1, F1, C1, J1> a, Quantity<B2, S2, F2, C2, J2> b) {
  return typename detail::Simplified<B1 - B2, S1 - S2, F1 - F2, C1 - C2, J1 - J2>::type(a.value() / b.value());
}

using Bytes = Quantity<1, 0, 0, 0>;
using Seconds = Quantity<0, 1, 0, 0>;
using FlopCount = Quantity<0, 0, 1, 0>;
using Cycles = Quantity<0, 0, 0, 1>;
using BytesPerSecond = Quantity<1, -1, 0, 0>;
using FlopsPerSecond = Quantity<0, -1, 1, 0>;
using FlopsPerByte = Quantity<-1, 0, 1, 0>;  // arithmetic intensity
using Hertz = Quantity<0, -1, 0, 1>;         // cycles per second
using BytesPerCycle = Quantity<1, 0, 0, -1>;
using FlopsPerCycle = Quantity<0, 0, 1, -1>;
using Joules = Quantity<0, 0, 0, 0, 1>;
using Watts = Quantity<0, -1, 0, 0, 1>;

inline constexpr Bytes kKiB{1024.0};
inline constexpr Bytes kMiB{1024.0 * 1024.0};
inline constexpr Bytes kGiB{1024.0 * 1024.0 * 1024.0};
inline constexpr Bytes kMB{1e6};
inline constexpr Bytes kGB{1e9};
inline constexpr Seconds kMillisecond{1e-3};
inline constexpr Seconds kMicrosecond{1e-6};
inline constexpr Seconds kNanosecond{1e-9};

}  // namespace dculab
