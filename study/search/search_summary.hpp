// What is kept of the points of a search while they go by: the best, the best of each axis' values and of each group
// and block size, the Pareto front.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "sim/study/pareto.hpp"
#include "study/search/point_pricer.hpp"

namespace dculab::study {

// A point that is kept.
struct KeptPoint {
  std::uint64_t number = 0;
  std::vector<double> figures;  // by SweepSpace::metrics()
  std::string bound;
};

// A point, whether or not it meets the constraints.
struct WeighedPoint {
  KeptPoint point;
  bool meets_constraints = false;
};

// The best point that has a value of an axis; nothing where no such point meets the constraints.
struct BestOfValue {
  std::size_t axis = 0;
  std::string value;
  std::optional<KeptPoint> best;
};

class SearchSummary {
 public:
  explicit SearchSummary(const SweepSpace& space);

  // The points of the next chunk, of which the first is `begin`. Chunks come in order.
  void add(std::uint64_t begin, const config::SearchChunk& chunk);

  [[nodiscard]] std::uint64_t count(config::Outcome outcome) const {
    return counts_[static_cast<std::size_t>(outcome)];
  }
  [[nodiscard]] const std::string& refusal() const { return refusal_; }
  [[nodiscard]] const std::vector<KeptPoint>& best() const { return best_; }  // best first; of equals the first point
  // Of axes with at most kMostValues values.
  [[nodiscard]] const std::vector<BestOfValue>& best_of_values() const { return best_of_values_; }
  // With each pair of KV heads and block size, where both are axes and the pairs are at most kMostPairs; those that
  // meet the constraints.
  [[nodiscard]] std::vector<KeptPoint> best_of_pairs() const;
  [[nodiscard]] std::vector<KeptPoint> front() const;
  // In their order, of served requests with at most kAll points; those that were refused are not among them.
  [[nodiscard]] const std::vector<WeighedPoint>& all() const { return all_; }
  // Points of which one may become the best when something changes: all, or the best and the best of each value.
  [[nodiscard]] std::vector<std::uint64_t> contenders() const;

  static constexpr std::size_t kBest = 64;        // points that are kept
  static constexpr std::size_t kMostValues = 64;  // of an axis, for its values to be told apart
  static constexpr std::size_t kMostPairs = 1024;
  static constexpr std::size_t kAll = 256;  // contenders, and points that are kept, when there are no more

 private:
  [[nodiscard]] bool better(const KeptPoint& a, const KeptPoint& b) const;
  void keep(const KeptPoint& point);
  void keep_of_values(const KeptPoint& point);
  void choose_pair_axes();

  const SweepSpace& space_;
  std::size_t metric_;
  std::array<std::uint64_t, 3> counts_{};
  std::string refusal_;
  std::vector<KeptPoint> best_;
  std::vector<WeighedPoint> all_;
  std::vector<BestOfValue> best_of_values_;
  std::vector<std::size_t> first_value_;  // of each axis, in best_of_values_; kUnreported: not told apart
  std::optional<std::pair<std::size_t, std::size_t>> pair_axes_;
  std::vector<std::optional<KeptPoint>> best_of_pairs_;  // [values of the first, values of the second]
  sim::ParetoFront front_;
  std::vector<KeptPoint> on_front_;  // has all of the front, and some that left it
  std::vector<std::uint64_t> positions_;
};

}  // namespace dculab::study
