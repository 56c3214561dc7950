#include "sim/speculation/acceptance.hpp"

#include <algorithm>

namespace dculab::sim {
namespace {

// Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
[[nodiscard]] std::uint64_t mixed(std::uint64_t bits) {
  bits += 0x9e3779b97f4a7c15U;
  bits = (bits ^ (bits >> 30U)) * 0xbf58476d1ce4e5b9U;
  bits = (bits ^ (bits >> 27U)) * 0x94d049bb133111ebU;
  return bits ^ (bits >> 31U);
}

// In [0, 1).
[[nodiscard]] double draw(std::uint64_t seed, int position, int rank) {
  const std::uint64_t place = static_cast<std::uint64_t>(position) << 8U | static_cast<std::uint64_t>(rank);
  return static_cast<double>(mixed(mixed(seed) ^ place) >> 11U) * 0x1p-53;
}

[[nodiscard]] bool are_rates(const std::vector<double>& rates) {
  return std::ranges::all_of(rates, [](double rate) { return rate >= 0 && rate <= 1; });
}

[[nodiscard]] double share(const DraftCounts::Place& place) {
  return static_cast<double>(place.accepted) / static_cast<double>(place.tested);
}

[[nodiscard]] std::vector<double> rates_of(const std::vector<DraftCounts::Place>& places) {
  std::vector<double> rates;
  for (const DraftCounts::Place& place : places) {
    if (place.tested == 0) break;
    rates.push_back(share(place));
  }
  return rates;
}

// Of each node, that it and all before it are accepted. A node stands after its parent and its likelier siblings.
[[nodiscard]] std::vector<double> reached(const Acceptance& acceptance, const DraftShape& shape) {
  std::vector<double> accepted;
  const std::vector<int> depths = shape.depths();
  std::vector<double> open(shape.nodes.size() + 1, 1);  // of a parent's place, that no guess so far was accepted
  for (const DraftShape::Node& node : shape.nodes) {
    const auto parent = static_cast<std::size_t>(node.parent + 1);
    const bool at_root = node.parent == DraftNode::kRoot;
    const double rate = acceptance.rate(depths[accepted.size()], node.rank);
    accepted.push_back((at_root ? 1 : accepted[parent - 1]) * open[parent] * rate);
    open[parent] *= 1 - rate;
  }
  return accepted;
}

}  // namespace

double Acceptance::rate(int depth, int rank) const {
  if (rank == 0 && !by_depth.empty()) return by_depth[std::min(static_cast<std::size_t>(depth), by_depth.size()) - 1];
  const auto index = static_cast<std::size_t>(rank);
  return index < by_rank.size() ? by_rank[index] : 0;
}

std::vector<std::string> problems(const Acceptance& acceptance, const DraftShape& shape) {
  std::vector<std::string> found;
  if (acceptance.by_depth.empty() && acceptance.by_rank.empty())
    found.emplace_back(
        "acceptance: missing; how often drafted tokens are accepted is known of the models, not of predicted times");
  if (!are_rates(acceptance.by_depth) || !are_rates(acceptance.by_rank))
    found.emplace_back("acceptance: rates must be from 0 to 1");
  const int width = shape.width();
  if (found.empty() && width > 1 && static_cast<int>(acceptance.by_rank.size()) < width)
    found.push_back("acceptance: a tree with " + std::to_string(width) + " guesses for a place needs as many rates " +
                    "by_rank, of guesses when likelier ones were rejected");
  return found;
}

Acceptance acceptance_of(const DraftCounts& counts) { return {rates_of(counts.by_depth), rates_of(counts.by_rank)}; }

double expected_tokens(const Acceptance& acceptance, const DraftShape& shape) {
  double tokens = 1;
  for (const double node : reached(acceptance, shape)) tokens += node;
  return tokens;
}

double expected_tokens_of_chain(double rate, int num_tokens) {
  // The sum, not the quotient that it equals, which loses digits near 1.
  double tokens = 1;
  for (int depth = 0; depth < num_tokens; ++depth) tokens = 1 + rate * tokens;
  return tokens;
}

double lecture_speed_up(double rate, int num_tokens, double cost) {
  return expected_tokens_of_chain(rate, num_tokens) / (num_tokens * cost + 1);
}

double rate_of_chain(double tokens, int num_tokens) {
  constexpr int kHalvings = 60;
  double low = 0, high = 1;
  for (int round = 0; round < kHalvings; ++round) {
    const double middle = (low + high) / 2;
    (expected_tokens_of_chain(middle, num_tokens) < tokens ? low : high) = middle;
  }
  return (low + high) / 2;
}

std::vector<int> accepted_path(const Acceptance& acceptance, const DraftTree& draft, std::uint64_t seed, int position) {
  std::vector<int> path;
  int parent = DraftNode::kRoot;
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    const int depth = static_cast<int>(path.size()) + 1;
    for (const int node : draft.children(parent)) {
      const int rank = draft.nodes[static_cast<std::size_t>(node)].rank;
      if (draw(seed, position + depth - 1, rank) >= acceptance.rate(depth, rank)) continue;
      path.push_back(node);
      parent = node;
      goes_on = true;
      break;
    }
  }
  return path;
}

}  // namespace dculab::sim
