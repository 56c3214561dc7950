// From logits to the choice of a token.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

#include "kernels/reference/reference_kernels.hpp"

namespace dculab::kernels::reference {
namespace {

// Whether a comes before b when the largest value is first. NaN comes after every number.
bool is_larger(float a, float b) { return a > b || (std::isnan(b) && !std::isnan(a)); }

}  // namespace

void softmax(const SoftmaxArgs& args) {
  for (int row = 0; row < args.rows; ++row) {
    const float* x = args.x + std::ptrdiff_t{row} * args.width;
    float* out = args.out + std::ptrdiff_t{row} * args.width;
    const double largest = *std::max_element(x, x + args.width);
    const auto weight = [&](float value) { return std::exp((value - largest) / args.temperature); };
    double total = 0;
    for (int i = 0; i < args.width; ++i) total += weight(x[i]);
    for (int i = 0; i < args.width; ++i) out[i] = static_cast<float>(weight(x[i]) / total);
  }
}

void argmax(const ArgmaxArgs& args) {
  for (int row = 0; row < args.rows; ++row) {
    const float* x = args.x + std::ptrdiff_t{row} * args.width;
    args.out[row] = static_cast<std::int32_t>(std::min_element(x, x + args.width, is_larger) - x);
  }
}

void top_k(const TopKArgs& args) {
  std::vector<std::int32_t> order(static_cast<std::size_t>(args.width));
  for (int row = 0; row < args.rows; ++row) {
    const float* x = args.x + std::ptrdiff_t{row} * args.width;
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) { return is_larger(x[a], x[b]); });
    for (int i = 0; i < args.k; ++i) {
      const std::int32_t index = order[static_cast<std::size_t>(i)];
      args.indices[std::ptrdiff_t{row} * args.k + i] = index;
      args.values[std::ptrdiff_t{row} * args.k + i] = x[index];
    }
  }
}

}  // namespace dculab::kernels::reference
