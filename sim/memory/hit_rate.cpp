#include "sim/memory/hit_rate.hpp"

#include <algorithm>

namespace dculab::sim {

Arrivals misses_of_private(Arrivals arrivals, const Reuse& reuse, Bytes capacity) {
  const double requests = 1 + arrivals.repeats;
  // The byte's requests spread over the units; all but each unit's first come back to the same cache.
  const double own = std::max(0.0, requests - std::min(requests, reuse.compute_units));
  if (own > 0) arrivals.repeats = std::max(0.0, arrivals.repeats - own * hit_probability(reuse.own, capacity));
  if (reuse.local_share > 0) arrivals.first *= 1 - reuse.local_share * hit_probability(reuse.first_local, capacity);
  return arrivals;
}

Arrivals misses_of_shared(Arrivals arrivals, const Reuse& reuse, Bytes capacity) {
  arrivals.first *= 1 - hit_probability(reuse.first, capacity);
  if (arrivals.repeats <= 0) return arrivals;
  const double requests = 1 + arrivals.repeats;
  const double concurrent = std::clamp(arrivals.concurrent, 1.0, requests);
  const double temporal = requests / concurrent - 1;
  const double together = requests - requests / concurrent;
  arrivals.repeats = temporal * (1 - hit_probability(reuse.temporal, capacity)) +
                     together * (1 - hit_probability(reuse.together, capacity));
  arrivals.concurrent = 1;
  return arrivals;
}

}  // namespace dculab::sim
