// How a published measurement was taken and how far it is to be trusted, by what its source says: one table.
#pragma once

#include <span>
#include <string_view>

#include "config/points_file.hpp"

namespace dculab::study {

struct PublishedSpread {
  std::string_view source;   // how sources begin
  std::string_view says;     // what the notes contain, in lower case; empty: any
  std::string_view machine;  // how machines begin; empty: any
  double spread = 0;         // relative standard deviation
  std::string_view why;
  bool holds_call = false;   // the time includes the overhead of one call, or of one graph launch
  bool starts_cold = false;  // the caches were flushed first
};

[[nodiscard]] std::span<const PublishedSpread> published_spreads();

// The largest of the rows that the point meets; 0 without one.
[[nodiscard]] double published_spread(const config::PublishedPoint& point);

// Whether one of them says so of its time.
[[nodiscard]] bool holds_call(const config::PublishedPoint& point);
[[nodiscard]] bool starts_cold(const config::PublishedPoint& point);

}  // namespace dculab::study
