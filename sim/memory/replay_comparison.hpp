// The closed forms of traffic.hpp, reuse.hpp and hit_rate.hpp beside the replay of what the kernel really touched.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/address_trace.hpp"
#include "core/step_plan.hpp"
#include "sim/hardware/machine.hpp"
#include "sim/memory/cache_replay.hpp"

namespace dculab::sim {

struct ComparedLevel {
  std::string name;
  Bytes replayed;     // that reach the level, loads and stores
  Bytes closed_form;  // the same
  double replayed_hit_rate = 0;
  double closed_hit_rate = 0;
};

struct ReplayComparison {
  std::string op;
  std::string kernel;     // of the first launch
  std::string resources;  // whose registers and LDS decide the occupancy: the machine's kernel_target, or "assumed"
  int workgroups = 0;     // of the first launch
  int workgroups_per_unit = 0;
  std::uint64_t accesses = 0;
  double coalescing = 0;  // bytes that lanes asked for / bytes of the lines they touched
  double lines_per_load = 0;
  std::vector<ComparedLevel> levels;  // as Machine::memory
  std::optional<ReuseHistogram> reuse;
};

// `launches` are those of one execution of the only op of `plan`, at least one. Both sides start with cold caches. A
// launch that follows finds nothing of the one before in the caches: what partial results gain there is left out on
// both sides. Throws InputError for a product that none of our kernels does on the machine.
[[nodiscard]] ReplayComparison compare_with_replay(const Machine& machine, const StepPlan& plan,
                                                   std::span<const AddressTrace> launches, ReuseMeasurement reuse);

}  // namespace dculab::sim
