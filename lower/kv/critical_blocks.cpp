#include "lower/kv/critical_blocks.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/kv/table.hpp"
#include "lower/attention.hpp"

namespace dculab::lower {
namespace {

// kernels/cpu/kv/critical_blocks-inl.hpp.
constexpr double kCpuBlocksOfTask = 128;
constexpr double kCpuHeadsAtOnce = 4;
// Full vectors: loads of four queries for the bounds of two blocks; the sums of four heads over their lanes.
constexpr double kCpuQueryLoads = 2;
constexpr double kCpuSums = 16;
// For each block, one at a time: its bound as a number that can be compared, its part of std::nth_element, its place in
// the list.
constexpr double kCpuChoiceInstructions = 40;
constexpr double kCpuChoiceTask = 200;
constexpr double kCpuRoundings = 8;  // of a bound: compared with the one that is there, rounded outwards

// kernels/gpu/kv.
constexpr double kGpuThreads = 256;
constexpr double kGpuBlocksOfWorkgroup = 64;
constexpr double kGpuChannelsOfLane = 8;
constexpr double kGpuPasses = 5;              // over the bounds of all blocks
constexpr double kGpuLoadsBefore = 3;         // lengths, budgets, queries
constexpr double kGpuStepsOfPass = 12;        // of shared memory: counts, sums in order
constexpr double kGpuInstructionsOfRow = 20;  // addresses, the table, comparisons

// The bounds of one sequence's blocks, in pieces, over all sequences.
[[nodiscard]] double parts_of_blocks(const AttentionWork& work, double piece) {
  const double sequences = std::max(1, work.num_sequences);
  return sequences * std::ceil(work.kv_blocks / sequences / piece);
}

void choose_on_cpu(const AttentionWork& work, double rows, Launch& launch) {
  const double group = static_cast<double>(work.num_query_heads) / work.num_kv_heads;
  const double rounds = std::ceil(group / kCpuHeadsAtOnce), tasks = launch.grid.workgroups;
  Arithmetic& arithmetic = launch.arithmetic;
  arithmetic.multiply = 2 * (rounds * kCpuHeadsAtOnce / group) * arithmetic.multiply;
  arithmetic.shaping_per_value = rounds * kCpuQueryLoads;
  arithmetic.softmax =
      FlopCount(kCpuLanes * (rows * (rounds * kCpuSums + kCpuChoiceInstructions) + tasks * kCpuChoiceTask));
  launch.overlap = Overlap::dram_in_turn;
}

void choose_on_gpu(const AttentionWork& work, const Device& device, double rows, Launch& launch) {
  const double lanes = std::bit_ceil(static_cast<unsigned>(work.head_dim / kGpuChannelsOfLane));
  const double group = static_cast<double>(work.num_query_heads) / work.num_kv_heads;
  const double rows_at_once = kGpuThreads / lanes;  // of a workgroup
  const double longest = work.kv_blocks / std::max(1, work.num_sequences);
  launch.arithmetic.softmax =
      FlopCount(rows * lanes * (group * (kGpuChannelsOfLane + 2 * std::log2(lanes)) + kGpuInstructionsOfRow));
  launch.arithmetic.has_matrix_instructions = false;
  launch.kernels = 2;
  launch.waits_for_table = rows / rows_at_once;
  launch.entries_at_once = std::min(rows_at_once, device.waves.wave_size / lanes);
  launch.loads_before = kGpuLoadsBefore;
  launch.chained_loads = kGpuPasses * std::ceil(longest / kGpuThreads);
  launch.chained_steps = kGpuPasses * kGpuStepsOfPass;
}

}  // namespace

bool walks_chosen_blocks(const Op& op, const StepPlan& step) {
  return op.kind == OpKind::attention_decode && kv_policy(step.kv_retention.policy).has_budget;
}

void lower_bounds_update(const Op& op, const Device& device, Launch& launch) {
  const AttentionWork& work = op.attention;
  const bool on_cpu = device.kind == DeviceKind::cpu;
  const double heads_at_once = on_cpu ? work.num_kv_heads : kGpuThreads / std::max(1, device.waves.wave_size);
  launch.grid.workgroups = launch.grid.most_workgroups = work.kv_blocks * std::ceil(work.num_kv_heads / heads_at_once);
  launch.arithmetic.multiply = op.flops;
  launch.arithmetic.stored_values = static_cast<double>(op.m) * static_cast<double>(op.n);
  launch.arithmetic.stored = work.kv_dtype;
  launch.arithmetic.softmax = FlopCount(kCpuRoundings * 2 * work.kv_blocks * static_cast<double>(op.n));
}

void lower_block_choice(const Op& op, const Device& device, Launch& launch) {
  const AttentionWork& work = op.attention;
  const bool on_cpu = device.kind == DeviceKind::cpu;
  const double rows = work.kv_blocks * work.num_kv_heads;
  const double parts = parts_of_blocks(work, on_cpu ? kCpuBlocksOfTask : kGpuBlocksOfWorkgroup);
  launch.grid.workgroups = launch.grid.most_workgroups = parts * work.num_kv_heads;
  Arithmetic& arithmetic = launch.arithmetic;
  arithmetic.pipe = Pipe::attention;
  arithmetic.multiply = op.flops;
  arithmetic.rows = static_cast<double>(work.num_query_heads) / work.num_kv_heads;
  arithmetic.stored_values = rows * 2 * work.head_dim;
  arithmetic.stored = Dtype::bf16;
  for (Access& access : launch.accesses()) {
    if (access.role == OperandRole::block_table) access.requests = work.num_kv_heads;
    if (access.role == OperandRole::activation) access.requests = parts / std::max(1, work.num_sequences);
  }
  on_cpu ? choose_on_cpu(work, rows, launch) : choose_on_gpu(work, device, rows, launch);
}

}  // namespace dculab::lower
