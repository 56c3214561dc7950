// Quantiles of any number of durations in memory that does not grow with them.
//
// Values are counted in buckets whose bounds grow by a constant factor, so that a quantile is right to 0.1 % of itself.
// Count, sum, smallest and largest are exact. Source: C. Masson, J. E. Rim, H. K. Lee, "DDSketch: a fast and
// fully-mergeable quantile sketch with relative-error guarantees", VLDB 2019.
#pragma once

#include <cstdint>
#include <map>

#include "core/units.hpp"

namespace dculab {

class QuantileSketch {
 public:
  static constexpr double kRelativeError = 1e-3;

  // Precondition: value >= 0.
  void add(Seconds value);

  [[nodiscard]] std::int64_t count() const { return count_; }
  [[nodiscard]] Seconds sum() const { return sum_; }
  [[nodiscard]] Seconds mean() const { return sum_ / static_cast<double>(count_); }
  [[nodiscard]] Seconds smallest() const { return smallest_; }
  [[nodiscard]] Seconds largest() const { return largest_; }

  // Between the two values nearest to rank q * (count - 1), linearly, as NumPy's percentile does.
  // Preconditions: count() >= 1; q lies in [0, 1].
  [[nodiscard]] Seconds quantile(double q) const;

 private:
  [[nodiscard]] Seconds at_rank(std::int64_t rank) const;

  std::map<int, std::int64_t> buckets_;  // (bound of i - 1, bound of i] -> values; kZeroBucket: 0
  std::int64_t count_ = 0;
  Seconds sum_, smallest_, largest_;
};

}  // namespace dculab
