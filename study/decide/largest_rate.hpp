// How many requests per second a number of replicas serve within the service level.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "study/decide/replica_count.hpp"

namespace dculab::study {

// The workload with requests that arrive at random at this rate, burstiness as it is.
[[nodiscard]] RequestWorkload with_rate(RequestWorkload workload, double requests_per_second);

struct LargestRate {
  std::size_t layout = 0;          // of those that were tried
  double requests_per_second = 0;  // of the whole load
};

// Of the layouts with their replicas, the one that serves the most within the service level; the rate is in steps of 2
// % of what it serves in closed form. Few requests say about how much, many decide. Of several layouts the four with
// the largest closed form are simulated. The layout's `simulated` is set. Nothing where none serves any. `asked.rate`
// says nothing. Precondition: the service level has limits.
[[nodiscard]] std::optional<LargestRate> largest_rate(std::vector<Tried>& tried, const AskedLoad& asked);

}  // namespace dculab::study
