// The laws of sim/ for an op as it is lowered for the machine.
#pragma once

#include <optional>

#include "lower/lower.hpp"
#include "sim/compute/compute_time.hpp"
#include "sim/compute/matmul_rate.hpp"
#include "sim/compute/parallelism.hpp"
#include "sim/compute/split_k.hpp"
#include "sim/memory/bandwidth.hpp"
#include "sim/memory/level_bytes.hpp"
#include "sim/memory/reuse.hpp"

namespace dculab::sim::test {

inline Parallelism parallelism(const Machine& machine, const Op& op) {
  return sim::parallelism(machine, lower::lower(op, machine));
}

inline ComputeTime compute_time(const Machine& machine, const Op& op, const Parallelism& parallel) {
  return sim::compute_time(machine, op, lower::lower(op, machine), parallel);
}

inline std::optional<FlopsPerSecond> matmul_rate(const Machine& machine, const Op& op) {
  return sim::matmul_rate(machine, *lower::lower(op, machine).product);
}

inline std::optional<double> matmul_dram_share(const Machine& machine, const Op& op) {
  return sim::matmul_dram_share(machine, *lower::lower(op, machine).product);
}

inline Seconds adding_time(const Machine& machine, const Op& op, double parts) {
  return sim::adding_time(machine, lower::lower(op, machine), parts);
}

inline LevelBytes level_bytes(const Machine& machine, const Op& op, const Parallelism& parallel, Bytes footprint,
                              CacheStart start) {
  return sim::level_bytes(machine, op, lower::lower(op, machine), parallel, footprint, start);
}

inline auto reuse_of(const Machine& machine, const Op& op, const Parallelism& parallel, Bytes footprint) {
  return sim::reuse_of(machine, op, lower::lower(op, machine), parallel, footprint);
}

inline Bytes bytes_in_flight(const Machine& machine, const Op& op, const Parallelism& parallel) {
  return sim::bytes_in_flight(machine, op, lower::lower(op, machine), parallel);
}

// Of a product that is not split along k.
inline double tile_workgroups(const Machine& machine, const Op& op) {
  return lower::lower(op, machine).grid.workgroups;
}

}  // namespace dculab::sim::test
