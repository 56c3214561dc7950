// From logits to the likeliest tokens.
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
