// How far a published measurement is to be trusted, by what its source says of how it was taken: one table.
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
};

[[nodiscard]] std::span<const PublishedSpread> published_spreads();

// The largest of the rows that the point meets; 0 without one.
[[nodiscard]] double published_spread(const config::PublishedPoint& point);

}  // namespace dculab::study
