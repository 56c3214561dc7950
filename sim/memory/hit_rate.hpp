// Which share of an operand's requests each memory level answers, from reuse distance against capacity.
//
//   hit_probability(d, c) = 1 / (1 + (d / c)^4)      after d other bytes passed through a cache of c: an LRU step,
//                                                    softened because real caches hash, are not fully associative,
//                                                    and are shared
//
// Each byte of an operand is asked for `requests` times in one execution of an op. The requests differ in how far
// back the same byte was last touched:
//   first       by an earlier op or step: distance = what ran between (weights and KV: the whole step's footprint)
//   own         by the same compute unit, earlier in this op: one workgroup's footprint
//   together    by a workgroup that runs at the same time: a fraction of the footprint in flight, since workgroups
//               that start together walk in step but drift apart; by slabs of k, no further than those under way
//   temporal    by an earlier round of workgroups: what those touched
// Private caches can answer `first` and `own`; the first shared cache answers `together`; every shared cache can answer
// `first` and `temporal`. What no cache answers goes to the next level, so requests never grow on the way down.
// The effective latency sum(hit share * latency) generalises H * T_cache + (1 - H) * T_DRAM (LLM-CoOpt,
// arXiv:2602.09323). Reuse distance: Mattson et al. 1970, "Evaluation techniques for storage hierarchies".
#pragma once

#include "core/units.hpp"

namespace dculab::sim {

// Workgroups that start together are this share of their walk apart when they meet the same byte: between lockstep (0),
// which is what the replay of recorded kernels shows, and independence (1).
inline constexpr double kDrift = 1.0 / 32.0;

[[nodiscard]] inline double hit_probability(Bytes distance, Bytes capacity) {
  const double ratio = distance / capacity;
  const double squared = ratio * ratio;
  return 1.0 / (1.0 + squared * squared);
}

// How an operand is re-used.
struct Reuse {
  double requests = 1;    // per byte
  double concurrent = 1;  // workgroups in flight that ask for the same byte
  double compute_units = 1;
  double local_share = 0;  // of the first requests: the same unit touched the byte last time
  Bytes first{};           // reuse distances, over the whole machine ...
  Bytes first_local{};     // ... and as one compute unit sees it
  Bytes own{};
  Bytes together{};
  Bytes temporal{};
};

// Requests per byte that reach a level: 1 + repeats at most.
struct Arrivals {
  double first = 1;
  double repeats = 0;
  double concurrent = 1;  // 1 once a shared cache has merged those that come together

  [[nodiscard]] double total() const { return first + repeats; }
};

[[nodiscard]] inline Arrivals all_requests(const Reuse& reuse) {
  return {1, reuse.requests > 1 ? reuse.requests - 1 : 0, reuse.concurrent};
}

// What a cache of each compute unit of `capacity` leaves for the next level.
[[nodiscard]] Arrivals misses_of_private(Arrivals arrivals, const Reuse& reuse, Bytes capacity);

// What a cache of `capacity` shared by all units leaves for the next level.
[[nodiscard]] Arrivals misses_of_shared(Arrivals arrivals, const Reuse& reuse, Bytes capacity);

}  // namespace dculab::sim
