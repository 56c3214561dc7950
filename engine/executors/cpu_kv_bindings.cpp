// The parts of the CPU executor that serve formats and policies of the KV cache.
#include <algorithm>
#include <stdexcept>

#include "core/kv/table.hpp"
#include "engine/executors/cpu_executor.hpp"
#include "engine/executors/plan_walk.hpp"

namespace dculab::engine {
namespace {

bool decodes_several(const Batch& batch) {
  return std::ranges::any_of(batch.sequences, [](const SequenceSlice& sequence) {
    return sequence.phase == Phase::decode && (sequence.num_new_tokens > 1 || sequence.num_tree_tokens > 0);
  });
}

}  // namespace

void CpuExecutor::forget(SequenceId id) {
  for (const auto& [policy, slice] : kv_policies_)
    if (slice != nullptr) slice->forget(id);
}

void CpuExecutor::fill_kv_cache(std::uint64_t seed) {
  kv_.fill_randomly(seed);
  makes_up_unseen_ = true;
  if (kv_format_ != nullptr) kv_format_->make_up_unseen();
  for (const auto& [policy, slice] : kv_policies_)
    if (slice != nullptr) slice->make_up_unseen();
}

const CpuKvSlice* CpuExecutor::kv_slice(RetentionPolicy policy) const {
  const auto found = kv_policies_.find(policy);
  return found == kv_policies_.end() ? nullptr : found->second.get();
}

void CpuExecutor::begin_kv(const StepPlan& plan) {
  const RetentionPolicy policy = plan.kv_retention.policy;
  if (!combines({kv_.options().dtype, policy}, KvFeature::speculation) && decodes_several(plan.batch))
    throw std::invalid_argument("batch: a decode has one new token where what it drops could not be brought back");
  const auto [place, is_new] = kv_policies_.try_emplace(policy);
  if (is_new) place->second = make_cpu_kv_slice(weights_.shape, policy);
  CpuKvSlice* const of_policy = place->second.get();
  if (is_new && of_policy != nullptr && makes_up_unseen_) of_policy->make_up_unseen();
  kv_slices_.clear();
  for (CpuKvSlice* slice : {of_policy, kv_format_.get()})
    if (slice != nullptr) kv_slices_.push_back(slice);
  for (CpuKvSlice* slice : kv_slices_) slice->begin(plan, kv_.options().block_size);
}

CpuKvLayer CpuExecutor::kv_layer(const Op& op, int layer) {
  return {
      .layer = layer,
      .cos_sin = positions_[op.layer_kind].cos_sin,
      .attention = {bind_attention(op, layer, static_cast<Phase>(0)), bind_attention(op, layer, static_cast<Phase>(1))},
      .beside_blocks = kv_.beside_blocks(layer),
      .threads = threads_,
      .workspace = workspace_};
}

void CpuExecutor::execute_kv_op(const Op& op, int layer) {
  CpuKvSlice* const slice = kv_slices_.empty() ? nullptr : kv_slices_.front();
  require(slice != nullptr, op, "is of a policy that the step does not have");
  slice->execute(op, kv_layer(op, layer));
}

}  // namespace dculab::engine
