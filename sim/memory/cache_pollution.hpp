// What other tenants drive out of a shared cache while a step's weights and KV wait for their next use.
//
//   cold(n + 1) = 1 - (1 - k * cold(n)) * exp(-(begin(n + 1) - begin(n)) / retention_time)
//
// A byte is used once a step, so that what lies between two steps' beginnings is how long it waits: a long prefill, or
// an idle time. What was fetched again may go again at once: k. A virtual machine shares its last cache with others';
// a machine whose caches are its own has no `retention_time`, and nothing is ever cold.
#pragma once

#include "core/op.hpp"
#include "core/units.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::sim {

// Share of re-fetched data that is evicted again. 8 MiB streamed by one core of an AMD
// EPYC: 0.2; decode steps of the engine there: 0.45 (docs/reference/cost-law.md).
inline constexpr double kEvictedAgain = 0.4;

// Steps that follow one another on one device.
class CacheWarmth {
 public:
  explicit CacheWarmth(const Machine& machine);

  // Of what the caches kept from the step before to the one that begins now, the share that is gone; of the first step
  // nothing, as if the same had just been run. Precondition: `now` never goes back.
  [[nodiscard]] double cold_share(Seconds now);

  // The same for a step that begins `waited` after one that was `before` cold.
  [[nodiscard]] double cold_share_after(double before, Seconds waited) const;

  // After so long a pause that nothing is left.
  [[nodiscard]] double cold_share_after_rest() const { return retention_time_ > Seconds{} ? 1 : 0; }

 private:
  Seconds retention_time_;  // 0: nothing is ever driven out
  Seconds last_begin_;
  double cold_ = 0;
  bool has_run_ = false;
};

// Weights and KV that one execution of `op` finds in the caches that other tenants share, where `footprint` bytes of
// them pass between two steps.
[[nodiscard]] Bytes kept_bytes(const Machine& machine, const Op& op, Bytes footprint);

}  // namespace dculab::sim
