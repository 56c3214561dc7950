#include "engine/regroup/group_error.hpp"

#include <algorithm>

#include "engine/checkpoint/stored_values.hpp"

namespace dculab::engine {
namespace {

// Of all heads: sum of |a|^2.
double energy(const SimilarityMatrix& products) {
  double sum = 0;
  for (int head = 0; head < products.size(); ++head) sum += products(head, head);
  return sum;
}

// sum over a of |a - mean|^2 = sum of |a|^2 - |sum of a|^2 / heads
double lost_to_mean(const SimilarityMatrix& products, const std::vector<int>& heads) {
  double own = 0, all = 0;
  for (const int a : heads) {
    own += products(a, a);
    for (const int b : heads) all += products(a, b);
  }
  return std::max(0.0, own - all / static_cast<double>(heads.size()));
}

double share(double part, double whole) { return whole > 0 ? part / whole : 0.0; }

}  // namespace

GroupError mean_error(const SimilarityMatrix& key_products, const SimilarityMatrix& value_products) {
  return [key_products, value_products, keys = energy(key_products),
          values = energy(value_products)](const std::vector<int>& heads) {
    if (heads.size() < 2) return 0.0;
    return (share(lost_to_mean(key_products, heads), keys) + share(lost_to_mean(value_products, heads), values)) / 2;
  };
}

SimilarityMatrix weight_products(const kernels::WeightView& rows, const Heads& heads, int columns) {
  const std::size_t size = static_cast<std::size_t>(heads.head_dim) * static_cast<std::size_t>(columns);
  const int count = heads.num_key_value_heads;
  std::vector<float> values(size * static_cast<std::size_t>(count));
  widen(rows.data, rows.dtype, values);
  SimilarityMatrix products(count);
  for (int a = 0; a < count; ++a)
    for (int b = 0; b <= a; ++b) {
      const float* const left = values.data() + static_cast<std::size_t>(a) * size;
      const float* const right = values.data() + static_cast<std::size_t>(b) * size;
      double sum = 0;
      for (std::size_t i = 0; i < size; ++i) sum += static_cast<double>(left[i]) * static_cast<double>(right[i]);
      products.set(a, b, sum);
    }
  return products;
}

}  // namespace dculab::engine
