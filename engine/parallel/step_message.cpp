#include "engine/parallel/step_message.hpp"

namespace dculab::engine {

void MessageWriter::add_plan(const StepPlan& plan) {
  const Batch& batch = plan.batch;
  add_list(std::span<const Op>(plan.ops));
  add(plan.attention_split);
  add(plan.kv_retention);
  add(plan.filtered_logits);
  add(batch.cold_share);
  add(static_cast<std::uint8_t>(batch.filters_logits));
  add_list(std::span<const SequenceSlice>(batch.sequences));
  add_list(std::span<const TokenId>(batch.token_ids));
  add_list(std::span<const std::uint64_t>(batch.tree_masks));
  add(static_cast<std::uint64_t>(batch.block_tables.size()));
  for (const std::vector<BlockId>& table : batch.block_tables) add_list(std::span<const BlockId>(table));
}

void MessageReader::take_plan(StepPlan& plan) {
  Batch& batch = plan.batch;
  take_list(plan.ops);
  plan.attention_split = take<AttentionSplit>();
  plan.kv_retention = take<KvRetention>();
  plan.filtered_logits = take<std::int64_t>();
  batch.cold_share = take<double>();
  batch.filters_logits = take<std::uint8_t>() != 0;
  take_list(batch.sequences);
  take_list(batch.token_ids);
  take_list(batch.tree_masks);
  batch.block_tables.resize(take<std::uint64_t>());
  for (std::vector<BlockId>& table : batch.block_tables) take_list(table);
}

}  // namespace dculab::engine
