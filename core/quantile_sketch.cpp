#include "core/quantile_sketch.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dculab {
namespace {

constexpr int kZeroBucket = std::numeric_limits<int>::min();
constexpr double kGrowth = (1 + QuantileSketch::kRelativeError) / (1 - QuantileSketch::kRelativeError);

[[nodiscard]] int bucket_of(double value) {
  static const double log_growth = std::log(kGrowth);
  return value > 0 ? static_cast<int>(std::ceil(std::log(value) / log_growth)) : kZeroBucket;
}

// The value that is off by the same factor at both ends of the bucket.
[[nodiscard]] double middle_of(int bucket) {
  return bucket == kZeroBucket ? 0 : 2 * std::pow(kGrowth, bucket) / (kGrowth + 1);
}

}  // namespace

void QuantileSketch::add(Seconds value) {
  smallest_ = count_ == 0 ? value : std::min(smallest_, value);
  largest_ = count_ == 0 ? value : std::max(largest_, value);
  ++count_;
  sum_ += value;
  ++buckets_[bucket_of(value.value())];
}

Seconds QuantileSketch::at_rank(std::int64_t rank) const {
  if (rank <= 0) return smallest_;
  if (rank >= count_ - 1) return largest_;
  std::int64_t seen = 0;
  for (const auto& [bucket, count] : buckets_) {
    seen += count;
    if (seen > rank) return std::clamp(Seconds(middle_of(bucket)), smallest_, largest_);
  }
  return largest_;
}

Seconds QuantileSketch::quantile(double q) const {
  const double rank = q * static_cast<double>(count_ - 1);
  const auto below = static_cast<std::int64_t>(std::floor(rank));
  const Seconds low = at_rank(below);
  return low + (at_rank(below + 1) - low) * (rank - static_cast<double>(below));
}

}  // namespace dculab
