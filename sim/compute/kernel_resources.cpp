#include "sim/compute/kernel_resources.hpp"

#include <algorithm>
#include <cmath>

#include "sim/compute/compiled_kernels.hpp"

namespace dculab::sim {
namespace {

constexpr int kMaxVgprs = 256;
constexpr double kSlab = 32;            // values of k that a matmul stages at a time
constexpr double kTileTokens = 64;      // of a prefill attention tile
constexpr double kScoresPerRound = 64;  // tokens that decode attention scores before it updates the softmax

[[nodiscard]] int registers(double wanted) { return static_cast<int>(std::min<double>(kMaxVgprs, std::ceil(wanted))); }

[[nodiscard]] KernelResources matmul_resources(const Machine& machine, const Op& op) {
  MatmulTile tile = matmul_tile(op);
  tile.rows /= workgroups_per_tile(machine, op);
  KernelResources kernel;
  kernel.vgprs = registers(32 + tile.rows * tile.columns / kernel.threads);
  kernel.lds = storage(op.activation_dtype, 2 * (tile.rows + tile.columns) * kSlab);
  return kernel;
}

[[nodiscard]] KernelResources decode_resources(const AttentionWork& work, int wave_size) {
  const double heads = work.heads_per_workgroup;
  KernelResources kernel;
  kernel.vgprs = registers(40 + 2 * heads * work.head_dim / wave_size);
  kernel.lds = heads * (storage(Dtype::f32, kScoresPerRound) + storage(Dtype::f16, work.head_dim));
  return kernel;
}

[[nodiscard]] KernelResources prefill_resources(const AttentionWork& work) {
  KernelResources kernel;
  kernel.vgprs = registers(64 + kTileTokens * work.head_dim / kernel.threads);
  kernel.lds = storage(Dtype::f16, 2 * kTileTokens * work.head_dim);
  return kernel;
}

}  // namespace

double requests_of(const Op& op, OperandRole role) {
  for (const Operand& operand : op.operands())
    if (operand.role == role) return operand.requests;
  return 1;
}

MatmulTile matmul_tile(const Op& op) {
  MatmulTile tile{static_cast<double>(op.m), static_cast<double>(op.n)};
  for (const Operand& operand : op.operands()) {
    if (operand.role == OperandRole::weight) tile.rows = std::ceil(static_cast<double>(op.m) / operand.requests);
    if (operand.role == OperandRole::activation) tile.columns = std::ceil(static_cast<double>(op.n) / operand.requests);
  }
  return tile;
}

double workgroups_per_tile(const Machine& machine, const Op& op) {
  if (machine.kind == MachineKind::cpu) return 1;
  const MatmulTile tile = matmul_tile(op);
  const WaveResources& waves = machine.waves;
  const Bytes registers =
      storage(Dtype::f32, static_cast<double>(waves.vgprs_per_lane) * waves.wave_size * waves.simds_per_unit);
  return std::max(1.0, std::ceil(storage(Dtype::f32, tile.rows * tile.columns) / (0.5 * registers)));
}

double tile_workgroups(const Machine& machine, const Op& op) {
  return workgroups_per_tile(machine, op) * requests_of(op, OperandRole::weight) *
         requests_of(op, OperandRole::activation);
}

KernelResources kernel_resources(const Machine& machine, const Op& op) {
  if (const auto compiled = compiled_resources(machine, op)) return *compiled;
  switch (op.kind) {
    case OpKind::matmul:
      return matmul_resources(machine, op);
    case OpKind::attention_decode:
      return decode_resources(op.attention, machine.waves.wave_size);
    case OpKind::attention_prefill:
      return prefill_resources(op.attention);
    case OpKind::embedding:
    case OpKind::rms_norm:
    case OpKind::layer_norm:
    case OpKind::rope_and_cache:
    case OpKind::activation_mul:
    case OpKind::shift_sink_keys:
    case OpKind::attention_scores:
      return {};
  }
  return {};
}

}  // namespace dculab::sim
