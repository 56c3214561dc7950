#include "engine/regroup/key_norm_groups.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace dculab::engine {

std::vector<int> shared_out(int total, std::span<const double> parts) {
  const auto count = static_cast<int>(parts.size());
  const double whole = std::accumulate(parts.begin(), parts.end(), 0.0);
  std::vector<int> shares(parts.size(), 1);
  std::vector<std::pair<double, std::size_t>> remainders;  // ascending: the largest first
  int left = total - count;
  const int spare = left;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    // What is due to a part beyond the one that it has.
    const double due = std::max(0.0, (whole > 0 ? total * parts[i] / whole : double{1} * total / count) - 1);
    const int whole_due = std::min(static_cast<int>(due), spare);
    remainders.emplace_back(whole_due - due, i);
    shares[i] += whole_due, left -= whole_due;
  }
  std::ranges::sort(remainders);
  for (std::size_t i = 0; left > 0; ++i, --left) shares[remainders[i % remainders.size()].second] += 1;
  for (; left < 0; ++left) *std::ranges::max_element(shares) -= 1;  // parts that are due less than one took it
  return shares;
}

HeadGroups key_norm_groups(const SimilarityMatrix& key_products, int num_groups) {
  std::vector<double> norms;
  for (const std::vector<int>& pooled : neighbour_groups(key_products.size(), num_groups)) {
    double square = 0;
    for (const int a : pooled)
      for (const int b : pooled) square += key_products(a, b);
    norms.push_back(std::sqrt(std::max(0.0, square)) / static_cast<double>(pooled.size()));
  }
  HeadGroups groups;
  int head = 0;
  for (const int size : shared_out(key_products.size(), norms)) {
    groups.emplace_back(static_cast<std::size_t>(size));
    for (int& member : groups.back()) member = head++;
  }
  return groups;
}

}  // namespace dculab::engine
