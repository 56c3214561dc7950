// Which KV heads of a layer become one head; groups of equal size, neighbours or the most similar ones.
#pragma once

#include <optional>
#include <vector>

namespace dculab::engine {

// [groups][heads of a group]: a partition of the heads 0 .. n - 1. Heads ascend within a group, groups by first head.
using HeadGroups = std::vector<std::vector<int>>;

// Heads 0 .. p - 1, p .. 2p - 1, ...: the groups of Ainslie et al. (arXiv:2305.13245).
// Precondition: num_groups divides num_heads.
[[nodiscard]] HeadGroups neighbour_groups(int num_heads, int num_groups);

// How alike each two heads are: symmetric, larger is more alike.
class SimilarityMatrix {
 public:
  explicit SimilarityMatrix(int size)
      : size_(size), values_(static_cast<std::size_t>(size) * static_cast<std::size_t>(size)) {}

  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] double operator()(int a, int b) const { return values_[index(a, b)]; }
  void set(int a, int b, double similarity) { values_[index(a, b)] = values_[index(b, a)] = similarity; }

 private:
  [[nodiscard]] std::size_t index(int a, int b) const {
    return static_cast<std::size_t>(a) * static_cast<std::size_t>(size_) + static_cast<std::size_t>(b);
  }

  int size_;
  std::vector<double> values_;  // [size, size]
};

// The groups with the largest sum of similarities over pairs inside a group. The sum over all pairs is what it is, so
// they also have the smallest sum between groups (Opt-GQA asks for both).
// Exact up to kExactHeads heads. Above, the best of a number of local optima under swaps of two heads, among them the
// one reached from the neighbours: never worse than they are, but perhaps not the best there is. The same every time.
// Precondition: num_groups divides the size.
[[nodiscard]] HeadGroups similar_groups(const SimilarityMatrix& similarity, int num_groups);
inline constexpr int kExactHeads = 16;

// Means over pairs of heads; nothing where there is no such pair (groups of one head; a single group).
struct GroupSimilarity {
  std::optional<double> inside;   // both in one group
  std::optional<double> between;  // in two
};
[[nodiscard]] GroupSimilarity group_similarity(const SimilarityMatrix& similarity, const HeadGroups& groups);

}  // namespace dculab::engine
