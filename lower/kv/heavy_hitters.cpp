// H2O: its pass over the keys, and what it remembers of them.
#include <algorithm>
#include <cstdint>

#include "lower/attention.hpp"
#include "lower/attention_walk.hpp"
#include "lower/kv/kv_lowering.hpp"
#include "lower/kv/kv_memory.hpp"

namespace dculab::lower {
namespace {

// For each score: a sum over the lanes of a vector (four rounds of a shuffle and an addition), the scale, a store.
constexpr double kCpuDotInstructions = 10;
constexpr double kCpuDotLoads = 1;  // per value, beside its conversion: the query's, and the loop

}  // namespace

AttentionTile heavy_hitters_tile(const AttentionWork& work) { return {.query_heads = group_size(work)}; }

void score_head_by_head(Arithmetic& arithmetic, double scores, int heads, double per_score) {
  arithmetic.stored_values *= heads;
  arithmetic.shaping_per_value = kCpuDotLoads;
  arithmetic.softmax = FlopCount(scores * (per_score + kCpuDotInstructions * kCpuLanes));
}

void add_choice_of_tokens(const Op& op, const StepPlan& step, Launch& launch) {
  const AttentionWork& work = op.attention;
  const std::int64_t capacity = kv_capacity(step.kv_retention, work.block_size);
  const auto full = std::ranges::count_if(
      step.batch.sequences, [&](const SequenceSlice& sequence) { return sequence.context_tokens() >= capacity; });
  const auto positions = static_cast<double>(full * capacity * work.num_kv_heads);
  for (Access& access : launch.accesses())
    if (access.role == OperandRole::activation) access.unique += Bytes(sizeof(std::int32_t) * positions);
}

int heavy_hitter_places(const KvRetention& retention, int block_size, int longest_text) {
  return static_cast<int>(std::min<std::int64_t>(kv_capacity(retention, block_size), longest_text));
}

Bytes heavy_hitters_memory(DeviceKind device, const ModelShape& model, const KvRetention& retention, int block_size) {
  constexpr double kPlace = sizeof(float) + sizeof(std::int32_t), kSlot = sizeof(std::int64_t);
  const double rows = static_cast<double>(model.num_layers()) * model.heads().num_key_value_heads;
  const double of_row = kPlace * heavy_hitter_places(retention, block_size, model.max_position_embeddings);
  return Bytes(rows * (of_row + (device == DeviceKind::gpu ? kSlot : 0)));
}

}  // namespace dculab::lower
