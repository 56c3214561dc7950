// Products with a plain quantized matrix, activations as they are or rounded to 8 bits.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

#include "kernels/reference/reference_kernels.hpp"

namespace dculab::kernels::reference {
namespace {

// In-features group after group, in each in their own order.
std::vector<int> in_features_by_group(const QuantizedMatrix& weight) {
  std::vector<int> order(static_cast<std::size_t>(weight.columns));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return weight.group(a) < weight.group(b); });
  return order;
}

// What the 8-bit activations of one token stand for.
std::vector<double> rounded_to_8_bits(const float* x, const QuantizedMatrix& weight) {
  const std::vector<int> order = in_features_by_group(weight);
  const auto size = static_cast<std::size_t>(activation_group_size(weight.group_size));
  std::vector<double> rounded(order.size(), 0.0);
  for (std::size_t begin = 0; begin < order.size(); begin += size) {
    float largest = 0;
    for (std::size_t i = begin; i < begin + size; ++i) largest = std::max(largest, std::abs(x[order[i]]));
    if (largest < kSmallestActivation) continue;
    const float inverse = 127.0F / largest, scale = largest / 127.0F;
    for (std::size_t i = begin; i < begin + size; ++i) {
      rounded[static_cast<std::size_t>(order[i])] = double{scale} * std::nearbyint(x[order[i]] * inverse);
    }
  }
  return rounded;
}

}  // namespace

void quantized_matmul(const QuantizedMatmulArgs& args) {
  const QuantizedMatrix& weight = *args.weight;
  const auto columns = static_cast<std::size_t>(weight.columns);
  std::size_t out = 0;
  for (std::size_t row = 0; row < static_cast<std::size_t>(args.m); ++row) {
    const float* given = args.x + row * columns;
    const std::vector<double> x = args.activations == ActivationMode::int8
                                      ? rounded_to_8_bits(given, weight)
                                      : std::vector<double>(given, given + columns);
    for (std::size_t n = 0; n < static_cast<std::size_t>(weight.rows); ++n) {
      double sum = args.bias != nullptr ? args.bias[n] : 0.0;
      for (std::size_t k = 0; k < columns; ++k) {
        const std::size_t at =
            n * static_cast<std::size_t>(weight.groups()) + static_cast<std::size_t>(weight.group(static_cast<int>(k)));
        sum += x[k] * weight.scales[at] * (weight.q[n * columns + k] - weight.zeros[at]);
      }
      args.y[out++] = static_cast<float>(sum);
    }
  }
}

}  // namespace dculab::kernels::reference
