// The time of resources that work side by side but hide each other imperfectly: a p-norm.
//
//   time = (sum t^p)^(1/p),   p = ln 2 / ln(2 - overlap)
//
// Never less than the largest, and close to it when the others are small. `overlap` is what it says at the ridge: of
// two equal times t together they take (2 - overlap) * t; 1 hides one wholly, 0 would add them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

#include "core/units.hpp"

namespace dculab::sim {

[[nodiscard]] inline double norm_of_overlap(double overlap) {
  return overlap < 1 ? std::log(2.0) / std::log(2 - overlap) : std::numeric_limits<double>::infinity();
}

template <std::size_t N>
[[nodiscard]] Seconds smooth_max(std::span<const Seconds, N> times, double norm) {
  const Seconds largest = *std::max_element(times.begin(), times.end());
  if (largest <= Seconds{} || std::isinf(norm)) return largest;
  double sum = 0;
  for (const Seconds time : times)
    if (time > Seconds{}) sum += time < largest ? std::pow(time / largest, norm) : 1;  // pow is slow
  return sum <= 1 ? largest : largest * std::pow(sum, 1 / norm);
}

}  // namespace dculab::sim
