// Critical blocks: bounds of keys, and the choice of the blocks that a decode loads (kernels/kv/critical_blocks.hpp).
//
//   CPU  a task has 128 blocks of a sequence and KV head. Of each, both bounds of a channel are multiplied, with four
//        heads at a time, of which a smaller group leaves some idle; sums over the lanes of a vector follow. The choice
//        takes each block's bound as a number, one at a time.
//   GPU  a workgroup has 64 blocks of a sequence and KV head, whose queries it loads; a lane has eight channels of a
//        block: it chooses a bound of each for each head. Another kernel finds the last chosen bound digit by digit,
//        four passes over the bounds, and writes the list in a fifth.
//
// Finer blocks have more bounds, that are all read and compared, and lists that are longer.
#include "lower/kv/kv_lowering.hpp"

#include <algorithm>
#include <cmath>

#include "core/kv/table.hpp"
#include "lower/attention.hpp"
#include "lower/kv/critical_blocks_geometry.hpp"
#include "lower/kv/kv_memory.hpp"
#include "model/attention_work.hpp"

namespace dculab::lower {
namespace {

// Full vectors of kernels/cpu/kv/critical_blocks-inl.hpp: loads of a query for each block; the sums of four heads over
// their lanes.
constexpr double kCpuQueryLoads = static_cast<double>(dculab_cpu::kChoiceHeads) / dculab_cpu::kChoiceBlocks;
constexpr double kCpuSums = 16;
// For each block, one at a time: its bound as a number that can be compared, its part of std::nth_element, its place in
// the list.
constexpr double kCpuChoiceInstructions = 40;
constexpr double kCpuChoiceTask = 200;
constexpr double kCpuRoundings = 8;  // of a bound: compared with the one that is there, rounded outwards

// kernels/gpu/kv.
constexpr double kGpuLoadsBefore = 3;         // lengths, budgets, queries
constexpr double kGpuStepsOfPass = 12;        // of shared memory: counts, sums in order
constexpr double kGpuInstructionsOfRow = 20;  // addresses, the table, comparisons
constexpr double kGpuRoundings = 8;           // of a bound: widened and compared with the one there, rounded, packed
constexpr double kGpuMerge = 2;               // a value of another lane, compared

// The bounds of one sequence's blocks, in pieces, over all sequences.
[[nodiscard]] double parts_of_blocks(const AttentionWork& work, double piece) {
  const double sequences = std::max(1, work.num_sequences);
  return sequences * std::ceil(work.kv_blocks / sequences / piece);
}

void choose_on_cpu(const AttentionWork& work, double rows, Launch& launch) {
  const double group = static_cast<double>(work.num_query_heads) / work.num_kv_heads;
  const double rounds = std::ceil(group / dculab_cpu::kChoiceHeads), tasks = launch.grid.workgroups;
  Arithmetic& arithmetic = launch.arithmetic;
  arithmetic.multiply = 2 * (rounds * dculab_cpu::kChoiceHeads / group) * arithmetic.multiply;
  arithmetic.shaping_per_value = rounds * kCpuQueryLoads;
  arithmetic.softmax =
      FlopCount(kCpuLanes * (rows * (rounds * kCpuSums + kCpuChoiceInstructions) + tasks * kCpuChoiceTask));
  launch.overlap = Overlap::dram_in_turn;
}

void choose_on_gpu(const AttentionWork& work, const Device& device, double rows, Launch& launch) {
  const double lanes = dculab_gpu::bounds_row_lanes(work.head_dim);
  const double group = static_cast<double>(work.num_query_heads) / work.num_kv_heads;
  const double rows_at_once = dculab_gpu::kBoundsThreads / lanes;  // of a workgroup
  const double longest = work.kv_blocks / std::max(1, work.num_sequences);
  launch.arithmetic.softmax =
      FlopCount(rows * lanes * (group * (dculab_gpu::kBoundsChannels + 2 * std::log2(lanes)) + kGpuInstructionsOfRow));
  launch.arithmetic.has_matrix_instructions = false;
  launch.kernels = 2;
  launch.waits_for_table = rows / rows_at_once;
  launch.entries_at_once = std::min(rows_at_once, device.waves.wave_size / lanes);
  launch.loads_before = kGpuLoadsBefore;
  launch.chained_loads = dculab_gpu::kChoicePasses * std::ceil(longest / dculab_gpu::kBoundsThreads);
  launch.chained_steps = dculab_gpu::kChoicePasses * kGpuStepsOfPass;
}

// A wave has a block and KV head: its rows of lanes merge what they found, and the first one rounds.
[[nodiscard]] FlopCount merge_on_gpu(const AttentionWork& work, const Device& device) {
  const double wave = std::max(1, device.waves.wave_size);
  const double rounds = std::log2(std::max(1.0, wave / dculab_gpu::bounds_row_lanes(work.head_dim)));
  const double bounds_of_lane = 2 * dculab_gpu::kBoundsChannels;
  return FlopCount(work.kv_blocks * work.num_kv_heads * wave * bounds_of_lane * (kGpuMerge * rounds + kGpuRoundings));
}

}  // namespace

bool walks_chosen_blocks(const Op& op, const StepPlan& step) {
  return op.kind == OpKind::attention_decode && kv_policy(step.kv_retention.policy).has_budget;
}

void lower_bounds_update(const Op& op, const Device& device, Launch& launch) {
  const AttentionWork& work = op.attention;
  const bool on_cpu = device.kind == DeviceKind::cpu;
  const double waves = dculab_gpu::kBoundsThreads / std::max(1, device.waves.wave_size);
  const double heads_at_once = on_cpu ? work.num_kv_heads : waves;
  launch.grid.workgroups = launch.grid.most_workgroups = work.kv_blocks * std::ceil(work.num_kv_heads / heads_at_once);
  launch.arithmetic.multiply = op.flops;
  launch.arithmetic.stored_values = static_cast<double>(op.m) * static_cast<double>(op.n);
  launch.arithmetic.stored = work.kv_dtype;
  launch.arithmetic.softmax =
      on_cpu ? FlopCount(kCpuRoundings * 2 * work.kv_blocks * static_cast<double>(op.n)) : merge_on_gpu(work, device);
}

void lower_block_choice(const Op& op, const Device& device, Launch& launch) {
  const AttentionWork& work = op.attention;
  const bool on_cpu = device.kind == DeviceKind::cpu;
  const double rows = work.kv_blocks * work.num_kv_heads;
  const double parts = parts_of_blocks(work, on_cpu ? dculab_cpu::kBlocksOfChoiceTask : dculab_gpu::kBoundedBlocks);
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

Bytes critical_blocks_memory(DeviceKind device, const ModelShape& model, const KvRetention& retention, int block_size) {
  const int blocks = blocks_of(0, model.max_position_embeddings, block_size);
  const double bounds = blocks * static_cast<double>(sizeof(float));
  const double list = (kv_blocks_loaded(retention, blocks) + 1.0) * sizeof(std::int32_t);  // and its length
  const double of_head = bounds + (device == DeviceKind::gpu ? list : 2 * list);           // a CPU has their places too
  return Bytes(model.heads().num_key_value_heads * of_head) + storage(Dtype::f32, model.heads().query_width());
}

}  // namespace dculab::lower
