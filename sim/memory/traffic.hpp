// The bytes an op asks of the fastest memory level.
//
//   requested = unique * requests * line rounding * padding
//   line rounding = ceil(run / line) * line / run      a run shorter than a line still moves the whole line
//   padding       = whole KV blocks / context          where the kernel loads the unused slots of the last block
//
// `requests` is the kernel's own tiling: how many workgroups load each byte (core/op.hpp).
#pragma once

#include "core/op.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::sim {

// Distinct bytes that `operand` of `op` moves, rounded up to whole lines and whole KV blocks.
[[nodiscard]] Bytes moved_once(const Machine& machine, const Op& op, const Operand& operand);

[[nodiscard]] inline bool is_written(OperandRole role) {
  return role == OperandRole::output || role == OperandRole::kv_write;
}

}  // namespace dculab::sim
