#include "engine/regroup/head_groups.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <utility>

namespace dculab::engine {
namespace {

using HeadSet = std::uint32_t;  // bit i: head i

constexpr int kRandomStarts = 32;
constexpr double kImprovement = 1e-12;  // a smaller gain is rounding, and swapping for it might never end

HeadGroups in_order(HeadGroups groups) {
  for (std::vector<int>& group : groups) std::ranges::sort(group);
  std::ranges::sort(groups, {}, [](const std::vector<int>& group) { return group.front(); });
  return groups;
}

// [2^n]: sum of similarities over the pairs in each set of heads.
std::vector<double> sums_inside(const SimilarityMatrix& similarity) {
  std::vector<double> sums(std::size_t{1} << similarity.size());
  for (HeadSet set = 1; set < sums.size(); ++set) {
    const HeadSet rest = set & (set - 1);
    const int lowest = std::countr_zero(set);
    sums[set] = sums[rest];
    for (HeadSet others = rest; others != 0; others &= others - 1)
      sums[set] += similarity(lowest, std::countr_zero(others));
  }
  return sums;
}

HeadGroups groups_from(HeadSet all, const std::vector<HeadSet>& last_group) {
  HeadGroups groups;
  for (HeadSet set = all; set != 0; set &= ~last_group[set]) {
    groups.emplace_back();
    for (HeadSet heads = last_group[set]; heads != 0; heads &= heads - 1)
      groups.back().push_back(std::countr_zero(heads));
  }
  return in_order(std::move(groups));
}

// Dynamic programming over the set of heads that are in a group already. The first head without a group goes into the
// next one, so that no partition is tried in two orders.
HeadGroups best_groups(const SimilarityMatrix& similarity, int group_size) {
  const std::vector<double> inside = sums_inside(similarity);
  const auto all = static_cast<HeadSet>(inside.size() - 1);
  std::vector<double> best(inside.size(), -std::numeric_limits<double>::infinity());
  std::vector<HeadSet> last_group(inside.size());
  best[0] = 0;
  for (HeadSet grouped = 0; grouped < all; ++grouped) {
    if (best[grouped] == -std::numeric_limits<double>::infinity()) continue;
    const HeadSet free = all & ~grouped;
    const HeadSet first = free & (~free + 1);
    const HeadSet choices = free & ~first;
    HeadSet others = 0;  // counts up through the subsets of choices: of equal totals, neighbours win
    do {
      const HeadSet group = others | first;
      if (std::popcount(group) == group_size && best[grouped] + inside[group] > best[grouped | group]) {
        best[grouped | group] = best[grouped] + inside[group];
        last_group[grouped | group] = group;
      }
      others = (others - choices) & choices;
    } while (others != 0);
  }
  return groups_from(all, last_group);
}

double total_inside(const SimilarityMatrix& similarity, const HeadGroups& groups) {
  double total = 0;
  for (const std::vector<int>& group : groups)
    for (std::size_t i = 0; i < group.size(); ++i)
      for (std::size_t j = 0; j < i; ++j) total += similarity(group[i], group[j]);
  return total;
}

// What total_inside gains when group[i] and other[j] change places.
double gain_of_swap(const SimilarityMatrix& similarity, const std::vector<int>& group, std::size_t i,
                    const std::vector<int>& other, std::size_t j) {
  double gain = 0;
  for (std::size_t at = 0; at < group.size(); ++at)
    if (at != i) gain += similarity(other[j], group[at]) - similarity(group[i], group[at]);
  for (std::size_t at = 0; at < other.size(); ++at)
    if (at != j) gain += similarity(group[i], other[at]) - similarity(other[j], other[at]);
  return gain;
}

bool improve_two(const SimilarityMatrix& similarity, std::vector<int>& group, std::vector<int>& other) {
  bool improved = false;
  for (std::size_t i = 0; i < group.size(); ++i)
    for (std::size_t j = 0; j < other.size(); ++j)
      if (gain_of_swap(similarity, group, i, other, j) > kImprovement) {
        std::swap(group[i], other[j]);
        improved = true;
      }
  return improved;
}

HeadGroups improved_by_swaps(const SimilarityMatrix& similarity, HeadGroups groups) {
  for (bool improved = true; improved;) {
    improved = false;
    for (std::size_t a = 0; a < groups.size(); ++a)
      for (std::size_t b = 0; b < a; ++b) improved |= improve_two(similarity, groups[a], groups[b]);
  }
  return in_order(std::move(groups));
}

// Each group starts with the first head that is left and takes, one by one, the head most similar to those it has.
HeadGroups greedy_groups(const SimilarityMatrix& similarity, int group_size) {
  std::vector<int> left(static_cast<std::size_t>(similarity.size()));
  std::iota(left.begin(), left.end(), 0);
  HeadGroups groups;
  while (!left.empty()) {
    std::vector<int> group{left.front()};
    left.erase(left.begin());
    while (static_cast<int>(group.size()) < group_size) {
      const auto next = std::ranges::max_element(left, {}, [&](int head) {
        double sum = 0;
        for (const int member : group) sum += similarity(head, member);
        return sum;
      });
      group.push_back(*next);
      left.erase(next);
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

HeadGroups shuffled_groups(int num_heads, int num_groups, std::mt19937_64& random) {
  std::vector<int> order(static_cast<std::size_t>(num_heads));
  std::iota(order.begin(), order.end(), 0);
  // Not std::shuffle: what that does with the generator is up to the library.
  for (std::size_t i = order.size() - 1; i > 0; --i) std::swap(order[i], order[random() % (i + 1)]);
  HeadGroups groups = neighbour_groups(num_heads, num_groups);
  for (std::vector<int>& group : groups)
    for (int& head : group) head = order[static_cast<std::size_t>(head)];
  return groups;
}

HeadGroups searched_groups(const SimilarityMatrix& similarity, int num_groups) {
  constexpr std::uint64_t kSeed = 1;
  std::mt19937_64 random(kSeed);
  const int heads = similarity.size();
  HeadGroups best = improved_by_swaps(similarity, neighbour_groups(heads, num_groups));
  const auto consider = [&](HeadGroups start) {
    HeadGroups found = improved_by_swaps(similarity, std::move(start));
    if (total_inside(similarity, found) > total_inside(similarity, best) + kImprovement) best = std::move(found);
  };
  consider(greedy_groups(similarity, heads / num_groups));
  for (int start = 0; start < kRandomStarts; ++start) consider(shuffled_groups(heads, num_groups, random));
  return best;
}

}  // namespace

HeadGroups neighbour_groups(int num_heads, int num_groups) {
  HeadGroups groups(static_cast<std::size_t>(num_groups));
  for (int head = 0; head < num_heads; ++head)
    groups[static_cast<std::size_t>(head / (num_heads / num_groups))].push_back(head);
  return groups;
}

HeadGroups similar_groups(const SimilarityMatrix& similarity, int num_groups) {
  if (similarity.size() > kExactHeads) return searched_groups(similarity, num_groups);
  return best_groups(similarity, similarity.size() / num_groups);
}

GroupSimilarity group_similarity(const SimilarityMatrix& similarity, const HeadGroups& groups) {
  double all = 0;
  for (int a = 0; a < similarity.size(); ++a)
    for (int b = 0; b < a; ++b) all += similarity(a, b);
  const int pairs = similarity.size() * (similarity.size() - 1) / 2;
  int pairs_inside = 0;
  for (const std::vector<int>& group : groups) pairs_inside += static_cast<int>(group.size() * (group.size() - 1) / 2);
  const double inside = total_inside(similarity, groups);
  GroupSimilarity result;
  if (pairs_inside > 0) result.inside = inside / pairs_inside;
  if (pairs > pairs_inside) result.between = (all - inside) / (pairs - pairs_inside);
  return result;
}

}  // namespace dculab::engine
