// Which measurements cannot be: faster than the machine's peaks allow. They are refused before anything is fitted.
//
//   step >= FLOP / peak of the format they are multiplied in
//   step >= bytes from a memory level / its peak bandwidth
//
// for every level, and the same for every op. From a level come the distinct weights and KV, less what the levels above
// it can hold: that needs no hit rates, since whatever a cache did, bytes beyond its size came from below. Published
// tables that read KV faster than the memory's peak exist (docs/reference/calibration.md).
//
// An embedding, rope_and_cache or activation of 0 s was not timed on its own (a profiled engine may fuse it) and is not
// checked; any other op of 0 s is refused.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/trace.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::sim {

struct FloorViolation {
  std::size_t row = 0;  // index of the step in the trace
  std::string what;     // "step" or the op's name
  std::string limit;    // "arithmetic peak" or the memory level's name
  Seconds measured;
  Seconds floor;
};

// The least time in which the machine could do all of `plan`.
[[nodiscard]] Seconds step_floor(const Machine& machine, const StepPlan& plan);

[[nodiscard]] std::vector<FloorViolation> floor_violations(const Machine& machine, std::span<const TraceStep> steps);

}  // namespace dculab::sim
