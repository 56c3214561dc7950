#include "lower/attention.hpp"

#include <algorithm>
#include <cmath>

#include "lower/kv/kv_lowering.hpp"
#include "model/attention_work.hpp"

namespace dculab::lower {
namespace {

constexpr double kTileTokens = 64;      // of a prefill tile
constexpr double kScoresPerRound = 64;  // tokens that decode scores before it updates the softmax
constexpr double kFlashRows = 64;       // of FlashAttention's tiles
constexpr double kInstructionsPerScore = 10;
constexpr double kCpuTileInstructions = 3;
constexpr double kCpuGatherInstructions = 1;
// For each query and head, full vectors: clear and fold its sums, two exponentials, one horizontal sum, divide, store.
constexpr double kCpuRowInstructions = 60;
// For each task, a walk of one sequence and KV head: finds the blocks of two tiles, lists their lines, clears. Scores
// come in whole vectors of tokens.
constexpr double kCpuTaskInstructions = 200;
[[nodiscard]] KernelResources decode_resources(const AttentionWork& work, double heads, int wave_size) {
  KernelResources kernel;
  kernel.vgprs = registers(40 + heads * (work.head_dim + work.value_dim) / wave_size);
  kernel.lds = heads * (storage(Dtype::f32, kScoresPerRound) + storage(Dtype::f16, work.head_dim));
  return kernel;
}

[[nodiscard]] KernelResources prefill_resources(const AttentionWork& work) {
  KernelResources kernel;
  kernel.vgprs = registers(64 + kTileTokens * work.value_dim / kernel.threads);
  kernel.lds = storage(Dtype::f16, 2 * kTileTokens * work.head_dim);
  return kernel;
}

[[nodiscard]] KernelResources assumed_resources(const Op& op, int heads, const Device& device) {
  if (op.kind == OpKind::attention_decode) return decode_resources(op.attention, heads, device.waves.wave_size);
  return op.kind == OpKind::attention_prefill ? prefill_resources(op.attention) : KernelResources{};
}

// Instructions per value of K and V that bring a tile into the shape the kernel multiplies in. GPU kernels multiply
// from where the loads put the values.
[[nodiscard]] double shaping_instructions(const Device& device, int block_size) {
  if (device.kind == DeviceKind::gpu) return 0;
  return kCpuTileInstructions + (block_size < kKvTileTokens ? kCpuGatherInstructions : 0);
}

// Pairs that are scored for each one that is seen: on a CPU a prefill's query computes the rest of its own tile too,
// half of it on average.
[[nodiscard]] double scored_per_seen(const Op& op, const Device& device) {
  if (device.kind == DeviceKind::gpu || op.kind != OpKind::attention_prefill) return 1;
  const AttentionWork& attention = op.attention;
  const double tile = std::min<double>(kKvTileTokens, attention.context_tokens / attention.num_sequences);
  return 1 + attention.query_tokens * tile / 2 / attention.score_pairs;
}

// A context of 40 tokens is scored as 48, and so much of K widened; V is weighed token by token.
void add_tasks(Arithmetic& arithmetic, double tasks, double scores, double walked_tokens) {
  const double mean = walked_tokens / tasks;
  const double padded = std::ceil(mean / kCpuLanes) * kCpuLanes / mean;
  arithmetic.multiply = arithmetic.multiply * ((padded + 1) / 2);
  arithmetic.stored_values *= (padded + 1) / 2;
  arithmetic.softmax +=
      FlopCount(scores * (padded - 1) * kInstructionsPerScore + tasks * kCpuTaskInstructions * kCpuLanes);
}

// New tokens of a decode that are rows of one pass.
[[nodiscard]] double tokens_of_pass(const Op& op, const AttentionTile& tile) {
  const double tokens = op.attention.query_tokens / std::max(1, op.attention.num_sequences);
  return op.kind == OpKind::attention_decode ? std::min<double>(tile.query_tokens, tokens) : 1;
}

void set_arithmetic(const Op& op, const Device& device, const AttentionTile& tile, const Grid& grid, double whole_tiles,
                    Arithmetic& arithmetic) {
  const double walked_tokens = grid.walked_tokens;
  const AttentionWork& attention = op.attention;
  const double scored = scored_per_seen(op, device);
  const int loaded = op.kind == OpKind::attention_scores ? attention.head_dim : attention.loaded_values();
  const double scores = scored * attention.score_pairs * attention.num_query_heads;
  const double rows = device.kind == DeviceKind::cpu ? attention.query_tokens * attention.num_query_heads : 0;
  arithmetic.pipe = Pipe::attention;
  arithmetic.multiply = scored * op.flops;
  if (is_nvidia(device)) arithmetic.tile_rows = kFlashRows;
  if (tile.padded_rows > 0) arithmetic.tile_rows = tile.padded_rows;
  arithmetic.rows =
      op.kind == OpKind::attention_prefill ? arithmetic.tile_rows : tile.query_heads * tokens_of_pass(op, tile);
  arithmetic.stored_values = loaded * walked_tokens;
  arithmetic.stored = attention.kv_dtype;
  arithmetic.shaping_per_value = shaping_instructions(device, attention.block_size);
  arithmetic.softmax = FlopCount(scores * kInstructionsPerScore + rows * kCpuRowInstructions * kCpuLanes);
  if (tile.vector_work.full > 0) {
    arithmetic.multiply = FlopCount();
    arithmetic.softmax = FlopCount(tile.vector_work.full * walked_tokens);
    arithmetic.packed = FlopCount(tile.vector_work.half * walked_tokens);
  }
  if (tile.issued.each_tile > 0) {
    const double tiles =
        tile.issued.multiplies ? whole_tiles : std::max(grid.workgroups, walked_tokens / tile.look_up.tokens);
    arithmetic.softmax = FlopCount();
    arithmetic.issued = FlopCount(grid.workgroups * tile.issued.once + tiles * tile.issued.each_tile);
    arithmetic.waves_to_fill = tile.issued.waves_to_fill;
  }
  if (tile.issued.multiplies) {
    arithmetic.multiply = FlopCount();
    arithmetic.stored_values = 0;
  }
  arithmetic.has_matrix_instructions = tile.has_matrix_instructions;
  if (op.kind == OpKind::attention_decode && device.kind == DeviceKind::cpu && walked_tokens > 0)
    add_tasks(arithmetic, grid.workgroups, scores, walked_tokens);
  if (op.kind == OpKind::attention_scores && device.kind == DeviceKind::cpu)
    score_head_by_head(arithmetic, scores, tile.query_heads, kInstructionsPerScore);
}

// What a wave can ask for before it looks into the block table again: a block, or its share of the tokens that the
// workgroup looks up at once.
[[nodiscard]] Bytes found_at_once(const Access& access, const AttentionWork& work, const AttentionTile& tile,
                                  double waves) {
  const double tokens = std::max<double>(work.block_size, tile.look_up.tokens / waves);
  return access.contiguous_run * (tokens / work.block_size);
}

// How often workgroups ask for K and V and block-table entries; partial results of split contexts are F32, written once
// and read once by the combining pass.
void set_accesses(Launch& launch, const AttentionWork& work, const AttentionWalk& walk, const AttentionTile& tile,
                  double waves) {
  for (Access& access : launch.accesses()) {
    if (access.role == OperandRole::kv_read) access.found_at_once = found_at_once(access, work, tile, waves);
    if (access.role == OperandRole::kv_read && work.context_tokens > 0)
      access.requests = head_groups(work, tile) * walk.tokens / work.context_tokens;
    if (access.role == OperandRole::block_table && work.kv_blocks > 0)
      access.requests = std::max(1.0, kBlockIdBytes * walk.table_entries / access.unique.value());
    if (access.role == OperandRole::output)
      access.unique += storage(Dtype::f32, 2 * walk.partitions_combined * work.num_query_heads * work.value_dim);
  }
}

}  // namespace

void lower_attention(const Op& op, const StepPlan& step, const AttentionKernel& kernel, const Device& device,
                     const ParameterChoices& chosen, Launch& launch) {
  const AttentionTile tile = kernel.tile(op, step, device, chosen);
  const AttentionWork& attention = op.attention;
  const AttentionWalk walk = walk_of(op, step, tile);
  const double sharing = head_groups(attention, tile);
  launch.knows_resources = tile.resources.has_value();
  if (device.kind == DeviceKind::gpu)
    launch.resources = tile.resources.value_or(assumed_resources(op, tile.query_heads, device));
  set_accesses(launch, attention, walk, tile, waves_per_workgroup(device.waves, launch.resources));
  if (walks_chosen_blocks(op, step))  // of which the KV heads have other ones
    for (Access& access : launch.accesses()) access.runs_in_step = 1;
  launch.grid.workgroups = launch.grid.most_workgroups = walk.workgroups;
  launch.grid.walked_tokens = sharing * walk.tokens * attention.num_kv_heads;
  launch.grid.longest_walk_tokens = walk.longest_tokens;
  launch.grid.is_dealt = tile.is_dealt;
  set_arithmetic(op, device, tile, launch.grid, walk.tiles, launch.arithmetic);
  launch.loads_before = tile.loads_before;
  launch.waits_for_table = walk.waits_for_table;
  launch.entries_at_once = std::max(1.0, static_cast<double>(tile.look_up.tokens) / attention.block_size);
  if (walk.partitions_combined > 0) launch.kernels = 2;  // a second one combines the split contexts
  if (device.kind == DeviceKind::cpu) {
    if (op.kind == OpKind::attention_decode) launch.overlap = Overlap::dram_in_turn;
    return;
  }
  if (is_hopper(device) && tile.has_matrix_instructions) launch.overlap = Overlap::all;
  if (tile.works_in_turn) launch.overlap = tile.wave_by_wave ? Overlap::waves : Overlap::neighbours;
  launch.draws_for_idle = tile.issued.each_tile > 0;  // what it does meanwhile is priced
  if (kernel.combines_at_a_time > 0 && walk.partitions_combined > 0)
    launch.chained_loads = walk.partitions_combined / attention.query_tokens / kernel.combines_at_a_time;
}

}  // namespace dculab::lower
