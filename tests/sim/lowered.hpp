// The laws of sim/ for an op as it is lowered for the machine.
#pragma once

#include <optional>

#include "lower/lower.hpp"
#include "sim/compute/compute_time.hpp"
#include "sim/compute/matmul_rate.hpp"
#include "sim/compute/parallelism.hpp"
#include "sim/compute/split_k.hpp"
#include "sim/cost/step_price.hpp"
#include "sim/cost/way_price.hpp"
#include "sim/memory/bandwidth.hpp"
#include "sim/memory/level_bytes.hpp"
#include "sim/memory/reuse.hpp"

namespace dculab::sim::test {

// `step` has the sequences that an attention op walks; other ops need none.
inline lower::Launch lowered(const Machine& machine, const Op& op, const StepPlan& step = {}) {
  return lower::lower(op, step, machine, machine.stack.kernels);
}

inline Parallelism parallelism(const Machine& machine, const Op& op, const StepPlan& step = {}) {
  return sim::parallelism(machine, lowered(machine, op, step));
}

inline ComputeTime compute_time(const Machine& machine, const Op& op, const Parallelism& parallel,
                                const StepPlan& step = {}) {
  return sim::compute_time(machine, op, lowered(machine, op, step), parallel);
}

inline std::optional<FlopsPerSecond> matmul_rate(const Machine& machine, const Op& op) {
  return sim::matmul_rate(machine, *lowered(machine, op).product);
}

inline std::optional<double> matmul_dram_share(const Machine& machine, const Op& op) {
  return sim::matmul_dram_share(machine, *lowered(machine, op).product);
}

inline Seconds split_k_reduction_time(const Machine& machine, const Op& op, double parts) {
  return sim::split_k_reduction_time(machine, lowered(machine, op), parts);
}

inline auto reuse_of(const Machine& machine, const Op& op, const Parallelism& parallel, Bytes footprint) {
  return sim::reuse_of(machine, op, lowered(machine, op), parallel, footprint);
}

inline Bytes bytes_in_flight(const Machine& machine, const Op& op, const Parallelism& parallel,
                             const StepPlan& step = {}) {
  return sim::bytes_in_flight(machine, lowered(machine, op, step), parallel);
}

// Of a product that is not split along k.
inline double tile_workgroups(const Machine& machine, const Op& op) { return lowered(machine, op).grid.workgroups; }

inline OpPrice price_op(const Machine& machine, const Op& op, Bytes footprint) {
  return sim::price_op(machine, StepPlan{}, op, footprint);
}

}  // namespace dculab::sim::test
