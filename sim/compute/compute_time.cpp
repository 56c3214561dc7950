#include "sim/compute/compute_time.hpp"

#include <algorithm>
#include <cmath>

#include "sim/compute/gpu_family.hpp"
#include "sim/compute/kernel_resources.hpp"
#include "sim/compute/matmul_rate.hpp"
#include "sim/compute/peak.hpp"

namespace dculab::sim {
namespace {

constexpr double kMatrixRows = 16;
constexpr double kFlashRows = 64;  // of FlashAttention's tiles
constexpr double kInstructionsPerScore = 10;
// The CPU kernel widens a tile of 64 tokens once for the whole group, transposes K (log2 of 16 lanes: 4 shuffles) and
// stores both; blocks shorter than the tile are gathered run by run. On AVX-512 up to 8 query rows do without storing
// and gathering: the attention_compute of a calibration takes that up.
constexpr int kCpuTileTokens = 64;
constexpr double kCpuTileInstructions = 3;
constexpr double kCpuGatherInstructions = 1;
// For each query and head, full vectors: clear and fold its sums, two exponentials, one horizontal sum, divide, store.
constexpr double kCpuRowInstructions = 60;
constexpr double kCpuLanes = 16;

// Integer products: per weight of less than 8 bits an AND and a shift for 8 values of a 32-bit lane, twice; per
// activation the largest of its group, scale, round and pack; per sum of a group: to F32, zero point, scale.
constexpr double kUnpackInstructions = 0.5;
constexpr double kRoundInstructions = 4;
constexpr double kScaleInstructions = 3;

// The work of an op, by the pipe it runs on.
struct Work {
  FlopCount multiply;
  double rows = 1;                 // that share one pass over the stored values
  double tile_rows = kMatrixRows;  // to which matrix cores pad them
  FlopCount vector_instructions;   // lanes; weighted by 1 / efficiency
  double efficiency = 1;
};

// Vector instructions beside integer products.
[[nodiscard]] double integer_overhead(const Op& op, double weights) {
  const double m = static_cast<double>(op.m);
  const double k = static_cast<double>(op.k);
  const double sums = m * static_cast<double>(op.n) * k / op.weight_format.group_size;
  return (bits(op.weight_format.dtype) < 8 ? weights * kUnpackInstructions : 0) + m * k * kRoundInstructions +
         sums * kScaleInstructions;
}

[[nodiscard]] Work matmul_work(const Machine& machine, const Op& op, Dtype multiplied) {
  Work work;
  work.multiply = op.flops;
  work.rows = std::max(1.0, static_cast<double>(op.m));
  work.efficiency = machine.efficiencies.matmul_compute;
  const double weights = static_cast<double>(op.n) * static_cast<double>(op.k) * requests_of(op, OperandRole::weight);
  const double instructions = multiplied == Dtype::int8 && op.activations == ActivationMode::int8
                                  ? integer_overhead(op, weights)
                                  : weights * conversion_instructions(machine, op.weight_format.dtype, multiplied);
  work.vector_instructions = FlopCount(instructions / machine.efficiencies.conversion_compute);
  return work;
}

// Instructions per value of K and V that bring a tile into the shape the kernel multiplies in. GPU kernels multiply
// from where the loads put the values.
[[nodiscard]] double tile_instructions(const Machine& machine, int block_size) {
  if (machine.kind == MachineKind::gpu) return 0;
  return kCpuTileInstructions + (block_size < kCpuTileTokens ? kCpuGatherInstructions : 0);
}

// Pairs that are scored for each one that is seen: the CPU kernel multiplies a tile of 64 tokens with all queries that
// see any of it, so that a prefill's query computes the rest of its own tile too, half of it on average.
[[nodiscard]] double scored_per_seen(const Machine& machine, const Op& op) {
  if (machine.kind == MachineKind::gpu || op.kind != OpKind::attention_prefill) return 1;
  const AttentionWork& attention = op.attention;
  const double tile = std::min<double>(kCpuTileTokens, attention.context_tokens / attention.num_sequences);
  return 1 + attention.query_tokens * tile / 2 / attention.score_pairs;
}

[[nodiscard]] Work attention_work(const Machine& machine, const Op& op, Dtype multiplied) {
  const AttentionWork& attention = op.attention;
  Work work;
  const bool prefill = op.kind == OpKind::attention_prefill;
  const double scored = scored_per_seen(machine, op);
  work.multiply = scored * op.flops;
  work.tile_rows = is_nvidia(machine) ? kFlashRows : kMatrixRows;
  work.rows = prefill ? work.tile_rows : attention.heads_per_workgroup;
  work.efficiency = machine.efficiencies.attention_compute;
  const double tensors = op.kind == OpKind::attention_scores ? 1 : 2;  // K, and V
  const double values = tensors * attention.head_dim * walked_tokens(op);
  const double conversions = values * (conversion_instructions(machine, attention.kv_dtype, multiplied) +
                                       tile_instructions(machine, attention.block_size));
  const double scores = scored * attention.score_pairs * attention.num_query_heads;
  const double rows = machine.kind == MachineKind::cpu ? attention.query_tokens * attention.num_query_heads : 0;
  const double softmax = scores * kInstructionsPerScore + rows * kCpuRowInstructions * kCpuLanes;
  work.vector_instructions = FlopCount(conversions / machine.efficiencies.conversion_compute +
                                       softmax / machine.efficiencies.attention_compute);
  return work;
}

[[nodiscard]] Seconds fastest(const Work& work, const Peak& peak, FlopsPerSecond lanes) {
  const Seconds vector = work.vector_instructions / lanes;
  const Seconds on_vector_units = work.multiply / (peak.vector * work.efficiency) + vector;
  if (!peak.matrix) return on_vector_units;
  const double rows = std::ceil(work.rows / work.tile_rows) * work.tile_rows / work.rows;
  const Seconds on_matrix_cores = std::max(work.multiply * rows / (*peak.matrix * work.efficiency), vector);
  return std::min(on_vector_units, on_matrix_cores);
}

}  // namespace

ComputeTime compute_time(const Machine& machine, const Op& op, const Parallelism& parallel) {
  const double busy_share = parallel.active_units / machine.compute_units;
  const bool attention = op.attention.num_sequences > 0;
  if (!attention && op.kind != OpKind::matmul) {
    const FlopsPerSecond peak = machine.peaks.at(Dtype::f32).vector;
    return {op.flops / (peak * machine.efficiencies.elementwise_compute * busy_share), op.flops / peak};
  }
  const MultiplyFormat format = multiply_format(machine, multiplied_in(op));
  const Seconds floor = op.flops / highest_rate(format.peak);
  if (const auto rate = attention ? std::nullopt : matmul_rate(machine, op)) {
    const FlopsPerSecond reached = std::min(*rate, highest_rate(format.peak)) * machine.efficiencies.matmul_compute;
    return {op.flops / (reached * busy_share), floor};
  }
  const Work work = attention ? attention_work(machine, op, format.dtype) : matmul_work(machine, op, format.dtype);
  return {fastest(work, format.peak, vector_lanes(machine)) / busy_share, floor};
}

}  // namespace dculab::sim
