#include "sim/compute/parallelism.hpp"

#include <algorithm>
#include <cmath>

#include "sim/compute/kernel_resources.hpp"
#include "sim/compute/split_k.hpp"

namespace dculab::sim {
namespace {

constexpr double kValuesPerWorkgroup = 2048;  // elementwise kernels: 256 threads, 8 values each

[[nodiscard]] double matmul_workgroups(const Machine& machine, const Op& op, double slots) {
  const double tiles = tile_workgroups(machine, op);
  if (tiles >= slots || has_tiles(machine, op)) return tiles;
  return std::min(slots, tiles * (machine.kind == MachineKind::gpu ? most_parts(op) : static_cast<double>(op.n)));
}

[[nodiscard]] double elementwise_workgroups(const Machine& machine, const Op& op) {
  const double rows = static_cast<double>(op.m);
  if (machine.kind == MachineKind::cpu) return rows / std::ceil(rows / machine.compute_units);
  if (op.kind == OpKind::rms_norm || op.kind == OpKind::layer_norm) return rows;
  return rows * std::ceil(static_cast<double>(op.n) / kValuesPerWorkgroup);
}

[[nodiscard]] double workgroups(const Machine& machine, const Op& op, double slots) {
  switch (op.kind) {
    case OpKind::matmul:
      return matmul_workgroups(machine, op, slots);
    case OpKind::attention_prefill:
    case OpKind::attention_decode:
    case OpKind::attention_scores:
      return op.attention.workgroups;
    case OpKind::embedding:
    case OpKind::rms_norm:
    case OpKind::layer_norm:
    case OpKind::rope_and_cache:
    case OpKind::shift_sink_keys:
    case OpKind::activation_mul:
      return elementwise_workgroups(machine, op);
  }
  return 1;
}

}  // namespace

double walked_tokens(const Op& op) {
  return requests_of(op, OperandRole::kv_read) * op.attention.context_tokens * op.attention.num_kv_heads;
}

Parallelism parallelism(const Machine& machine, const Op& op, Team team) {
  Parallelism result;
  result.team = team;
  if (team == Team::caller) return result;
  if (machine.kind == MachineKind::gpu) {
    const KernelResources kernel = kernel_resources(machine, op);
    result.workgroups_per_unit = std::max(1, workgroups_per_unit(machine.waves, kernel));
    result.waves_per_workgroup = waves_per_workgroup(machine.waves, kernel);
  }
  const double units = machine.compute_units;
  const double slots = units * result.workgroups_per_unit;
  result.workgroups = std::max(1.0, workgroups(machine, op, slots));
  result.rounds = std::ceil(result.workgroups / slots);
  result.concurrent = result.workgroups / result.rounds;
  result.active_units = result.workgroups / std::ceil(result.workgroups / units);
  if (op.attention.longest_walk_tokens > 0) {
    const double balance = std::max(1.0, walked_tokens(op) / op.attention.longest_walk_tokens);
    result.concurrent = std::min(result.concurrent, balance);
    result.active_units = std::min(result.active_units, balance);
  }
  return result;
}

}  // namespace dculab::sim
