// The parts of the GPU executor that serve policies of the KV cache.
#include <stdexcept>

#include "core/kv/table.hpp"
#include "engine/executors/gpu_executor.hpp"
#include "engine/executors/plan_walk.hpp"

namespace dculab::engine {

void GpuExecutor::forget(SequenceId id) {
  for (const auto& [policy, slice] : kv_policies_)
    if (slice != nullptr) slice->forget(id);
}

void GpuExecutor::fill_kv_cache(std::uint64_t seed) {
  kv_.fill_randomly(seed);
  makes_up_unseen_ = true;
  for (const auto& [policy, slice] : kv_policies_)
    if (slice != nullptr) slice->make_up_unseen();
}

void GpuExecutor::begin_kv(const StepPlan& plan) {
  const RetentionPolicy policy = plan.kv_retention.policy;
  const AttentionInputs& decodes = inputs_.attention(Phase::decode);
  const bool has_several = longest_query(decodes) > 1 || !decodes.tree_sizes.empty();
  if (!combines({kv_.options().dtype, policy}, KvFeature::speculation) && has_several)
    throw std::invalid_argument("batch: a decode has one new token where what it drops could not be brought back");
  const auto [place, is_new] = kv_policies_.try_emplace(policy);
  if (is_new)
    place->second = make_gpu_kv_slice(device_, shape_, options_.limits, kv_.options(), max_blocks_per_seq_, policy);
  kv_slice_ = place->second.get();
  if (is_new && kv_slice_ != nullptr && makes_up_unseen_) kv_slice_->make_up_unseen();
  if (kv_slice_ != nullptr) kv_slice_->begin(plan, kv_.options().block_size);
}

GpuAttention GpuExecutor::attention_of(const Op& op, int layer, Phase phase, const lower::AttentionTile& tile) {
  GpuAttention attention{.layer = layer_of(op, shape_).gqa(),
                         .tile = tile,
                         .activation_dtype = options_.activation_dtype,
                         .cache = kv_.layer(layer),
                         .inputs = inputs_.attention(phase),
                         .on_device = phase == Phase::prefill ? device_inputs_.prefill : device_inputs_.decode,
                         .qkv = activations_[Buffer::qkv].as<std::byte>(),
                         .out = activations_[Buffer::attention].as<std::byte>(),
                         .workspace = workspace_.as<float>(),
                         .alibi_slopes = positions_[op.layer_kind].alibi_slopes.as<float>()};
  if (kv_slice_ != nullptr) kv_slice_->bind(attention, phase);
  return attention;
}

GpuKvLayer GpuExecutor::kv_layer_of(const Op& op, int layer) {
  return {.layer = layer,
          .cos_sin = positions_[op.layer_kind].cos_sin.as<float>(),
          .attention = {attention_of(op, layer, static_cast<Phase>(0), {}),
                        attention_of(op, layer, static_cast<Phase>(1), {})},
          .beside_blocks = kv_.beside_blocks(layer)};
}

void GpuExecutor::execute_kv_op(const Op& op, int layer) {
  require(kv_slice_ != nullptr, op, "is of a policy that the step does not have");
  kv_slice_->execute(op, kv_layer_of(op, layer));
}

}  // namespace dculab::engine
