// The bytes that one pass over an operand moves at a memory level.
//
//   moved     = unique * line rounding
//   line rounding = (run + line - gcd(run, line)) / run      scattered runs that start at multiples of their length:
//                                                            the mean number of lines they touch
//
// KV blocks and embedding rows are scattered; the rows of other tensors follow one another. Unused slots of the last KV
// block are not loaded: kernels walk valid tokens only (Opt-Pa). A line that two runs share is fetched once below a
// cache that keeps it from the one to the other: see level_bytes.hpp.
#pragma once

#include "core/op.hpp"
#include "core/units.hpp"
#include "lower/launch.hpp"

namespace dculab::sim {

// Lines of `line` that scattered runs touch, in bytes over those of the runs, which start at multiples of what their
// length and `pitch` (0: any number of runs) have in common: at least 1. Both are at least a byte.
[[nodiscard]] double run_rounding(Bytes run, Bytes line, Bytes pitch = {});

// Of the bytes that `access` moves where lines are `line` long, over its distinct bytes. At least 1.
[[nodiscard]] double line_rounding(const lower::Access& access, Bytes line);

[[nodiscard]] inline bool is_written(OperandRole role) {
  return role == OperandRole::output || role == OperandRole::kv_write;
}

}  // namespace dculab::sim
