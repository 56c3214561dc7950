// The yardstick: what anyone computes from a data sheet.
//
//   time = sum over steps and ops of max( FLOP / peak, distinct bytes / DRAM bandwidth )
//
// with the highest peak of the format that is multiplied in. No caches, launches, occupancy, host or exchange, and of
// the bytes only the fused plan's: what an engine moves beyond them is on no data sheet.
#pragma once

#include "sim/hardware/machine.hpp"
#include "sim/study/measured_run.hpp"

namespace dculab::sim {

[[nodiscard]] Seconds naive_roofline(const Machine& machine, const Op& op);  // one execution
[[nodiscard]] Seconds naive_roofline(const Machine& machine, const MeasuredRun& measured_run);

}  // namespace dculab::sim
