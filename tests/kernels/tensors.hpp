// Random tensors in any stored format, and how far a kernel may be from the reference.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "core/dtype.hpp"
#include "kernels/cpu/cpu_kernels.hpp"
#include "kernels/reference/stored_value.hpp"
#include "tests/support/catch.hpp"

namespace dculab::kernels {

constexpr Dtype kStoredDtypes[] = {Dtype::f32, Dtype::f16, Dtype::bf16};

class TensorSource {
 public:
  explicit TensorSource(unsigned seed) : random_(seed) {}

  std::vector<float> floats(std::size_t count, float scale = 1.0F) {
    std::vector<float> values(count);
    for (float& value : values) value = scale * normal_(random_);
    return values;
  }

  // Values in `dtype`, as bytes.
  std::vector<std::byte> stored(std::size_t count, Dtype dtype, float scale = 1.0F) {
    std::vector<std::byte> bytes(count * static_cast<std::size_t>(bits(dtype) / 8));
    for (std::size_t i = 0; i < count; ++i) {
      reference::store_value(bytes.data(), dtype, i, scale * normal_(random_));
    }
    return bytes;
  }

  int integer(int lowest, int highest) { return std::uniform_int_distribution<int>(lowest, highest)(random_); }
  std::mt19937& engine() { return random_; }

 private:
  std::mt19937 random_;
  std::normal_distribution<float> normal_{0.0F, 1.0F};
};

// Bytes, not values: NaN is the same as itself.
template <typename T>
bool same_bytes(const std::vector<T>& a, const std::vector<T>& b) {
  return std::ranges::equal(std::as_bytes(std::span(a)), std::as_bytes(std::span(b)));
}

// Angles of `positions` positions, [positions, rotary_dim]: cosines, then sines. The first pair turns by `turn` a
// token.
inline std::vector<float> rotation_angles(int positions, int rotary_dim, float turn) {
  std::vector<float> rows;
  for (int position = 0; position < positions; ++position) {
    for (int i = 0; i < rotary_dim / 2; ++i) rows.push_back(std::cos(turn * static_cast<float>(position * (i + 1))));
    for (int i = 0; i < rotary_dim / 2; ++i) rows.push_back(std::sin(turn * static_cast<float>(position * (i + 1))));
  }
  return rows;
}

// The largest |a - b|, where NaN counts as infinite.
inline double largest_difference(std::span<const float> a, std::span<const float> b) {
  double largest = a.size() == b.size() ? 0.0 : INFINITY;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double difference = std::abs(double{a[i]} - double{b[i]});
    largest = std::max(largest, std::isnan(difference) ? INFINITY : difference);
  }
  return largest;
}

// Error of a sum of n products of size `magnitude` in F32: roundings add up like a random walk, with a margin of 4.
inline double sum_tolerance(int n, double magnitude) {
  constexpr double kEpsilon = 0x1p-24;
  return 4 * kEpsilon * std::sqrt(static_cast<double>(n)) * magnitude * std::sqrt(static_cast<double>(n));
}

// Runs body(target name) with each vector instruction set of this CPU.
template <typename Body>
void for_each_vector_target(Body&& body) {
  const std::vector<std::string_view> targets = cpu::vector_targets();
  for (const std::string_view target : targets) {
    cpu::select_vector_target(target);
    body(target);
  }
  cpu::select_vector_target(targets.front());
}

}  // namespace dculab::kernels
