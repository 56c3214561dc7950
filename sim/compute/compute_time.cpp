#include "sim/compute/compute_time.hpp"

#include <algorithm>
#include <cmath>

#include "sim/compute/peak.hpp"

namespace dculab::sim {
namespace {

constexpr double kMatrixRows = 16;
constexpr double kInstructionsPerScore = 10;
// The CPU kernel widens a tile of 64 tokens once for the whole group, transposes K (log2 of 16 lanes: 4 shuffles) and
// stores both; blocks shorter than the tile are gathered run by run.
constexpr int kCpuTileTokens = 64;
constexpr double kCpuTileInstructions = 3;
constexpr double kCpuGatherInstructions = 1;

// The work of an op, by the pipe it runs on.
struct Work {
  FlopCount multiply;
  double rows = 1;                // that share one pass over the stored values
  FlopCount vector_instructions;  // lanes; weighted by 1 / efficiency
  double efficiency = 1;
};

[[nodiscard]] Work matmul_work(const Machine& machine, const Op& op, Dtype multiplied) {
  Work work;
  work.multiply = op.flops;
  work.rows = std::max(1.0, static_cast<double>(op.m));
  work.efficiency = machine.efficiencies.matmul_compute;
  double passes = 1;
  for (const Operand& operand : op.operands())
    if (operand.role == OperandRole::weight) passes = operand.requests;
  const double values = static_cast<double>(op.n) * static_cast<double>(op.k) * passes;
  work.vector_instructions = FlopCount(values * conversion_instructions(machine, op.weight_format.dtype, multiplied) /
                                       machine.efficiencies.conversion_compute);
  return work;
}

// Instructions per value of K and V that bring a tile into the shape the kernel multiplies in. GPU kernels multiply
// from where the loads put the values.
[[nodiscard]] double tile_instructions(const Machine& machine, int block_size) {
  if (machine.kind == MachineKind::gpu) return 0;
  return kCpuTileInstructions + (block_size < kCpuTileTokens ? kCpuGatherInstructions : 0);
}

[[nodiscard]] Work attention_work(const Machine& machine, const Op& op, Dtype multiplied) {
  const AttentionWork& attention = op.attention;
  Work work;
  work.multiply = op.flops;
  work.rows = op.kind == OpKind::attention_decode ? attention.heads_per_workgroup : kMatrixRows;
  work.efficiency = machine.efficiencies.attention_compute;
  const double values = 2.0 * attention.head_dim * walked_tokens(op);
  const double conversions = values * (conversion_instructions(machine, attention.kv_dtype, multiplied) +
                                       tile_instructions(machine, attention.block_size));
  const double scores = attention.score_pairs * attention.num_query_heads;
  work.vector_instructions = FlopCount(conversions / machine.efficiencies.conversion_compute +
                                       scores * kInstructionsPerScore / machine.efficiencies.attention_compute);
  return work;
}

[[nodiscard]] Seconds fastest(const Work& work, const Peak& peak, FlopsPerSecond lanes) {
  const Seconds vector = work.vector_instructions / lanes;
  const Seconds on_vector_units = work.multiply / (peak.vector * work.efficiency) + vector;
  if (!peak.matrix) return on_vector_units;
  const double rows = std::ceil(work.rows / kMatrixRows) * kMatrixRows / work.rows;
  const Seconds on_matrix_cores = std::max(work.multiply * rows / (*peak.matrix * work.efficiency), vector);
  return std::min(on_vector_units, on_matrix_cores);
}

}  // namespace

ComputeTime compute_time(const Machine& machine, const Op& op, const Parallelism& parallel) {
  const double busy_share = parallel.active_units / machine.compute_units;
  const bool attention = op.kind == OpKind::attention_decode || op.kind == OpKind::attention_prefill;
  if (!attention && op.kind != OpKind::matmul) {
    const FlopsPerSecond peak = machine.peaks.at(Dtype::f32).vector;
    return {op.flops / (peak * machine.efficiencies.elementwise_compute * busy_share), op.flops / peak};
  }
  const MultiplyFormat format = multiply_format(machine, op.activation_dtype);
  const Work work = attention ? attention_work(machine, op, format.dtype) : matmul_work(machine, op, format.dtype);
  const FlopsPerSecond highest = std::max(format.peak.vector, format.peak.matrix.value_or(format.peak.vector));
  return {fastest(work, format.peak, vector_lanes(machine)) / busy_share, op.flops / highest};
}

}  // namespace dculab::sim
