// What a stack's kernels reach of a machine's peaks, and the times that no peak explains: of a program, of a stack, or
// of whatever runs there.
#pragma once

#include <string>
#include <string_view>

#include "core/units.hpp"

namespace dculab::sim {

struct Machine;
struct Stack;

// Shares are in (0, 1]. Defaults are priors; stack files, machine files and calibration replace them.
struct Reached {
  double matmul_compute = 0.75;  // of what the kernel was measured to reach where that is known, of the peak elsewhere
  double attention_compute = 0.45;
  double elementwise_compute = 0.25;
  double conversion_compute = 0.50;  // dequantising and widening weights or KV, of the vector instruction rate
  double cache_bandwidth = 1;        // of what streams through caches sustain
  // Share of one resource's time that hides behind another's equal time: of products, and of all other kernels.
  double matmul_overlap = 0.80, overlap = 0.80;
  // From an entry of the block table to an address, where that is not hidden: five instructions that wait for one
  // another, of 4 to 5 cycles. The load of the entry: sim/memory/table_look_up.hpp.
  Seconds block_lookup{15e-9};
  // Share of the launched kernels that the plan counts; the others copy, cast and fill.
  double counted_kernels = 1;
  // Share of a short served step's time without interference by other processes: the law and its fit say how long a
  // typical step takes, `simulate` what steps take on average (sim/serving/pauses.hpp). Measured by serving requests; 1
  // where they were not.
  double interference_free = 1;
};

// The section of a machine file about whatever runs there.
inline constexpr std::string_view kAnyStack = "all";

// `stack` as it runs on `machine`. Each figure is of the last that states it: the prior, the machine for `all`, the
// stack's file, the machine for the program, the machine for the stack.
[[nodiscard]] Stack stack_on(const Machine& machine, Stack stack);

// Keeps in the machine what its stack has come to reach there, `key` "matmul_compute": how a fit is remembered. Returns
// where it stands in the machine's file, "reached.dculab.matmul_compute", which has the source then too.
std::string keep_reached(Machine& machine, std::string_view key, const std::string& source);

}  // namespace dculab::sim
