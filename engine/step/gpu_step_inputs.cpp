#include "engine/step/gpu_step_inputs.hpp"

#include <cstddef>

namespace dculab::engine {
namespace {

template <typename T>
[[nodiscard]] DeviceMemory make_array(const std::shared_ptr<kernels::gpu::Device>& device, std::size_t count) {
  return {device, count * sizeof(T)};
}

[[nodiscard]] GpuStepInputs::Attention make_attention(const std::shared_ptr<kernels::gpu::Device>& device,
                                                      int max_num_seqs, int max_blocks_per_seq) {
  const auto seqs = static_cast<std::size_t>(max_num_seqs);
  return {make_array<std::int32_t>(device, seqs + 1), make_array<std::int32_t>(device, seqs),
          DeviceMemory(device, seqs * static_cast<std::size_t>(max_blocks_per_seq) * sizeof(std::int32_t),
                       OperandRole::block_table)};
}

}  // namespace

GpuStepInputs::GpuStepInputs(const std::shared_ptr<kernels::gpu::Device>& device, const GpuStepLimits& limits,
                             int max_blocks_per_seq)
    : token_ids(make_array<TokenId>(device, static_cast<std::size_t>(limits.max_num_batched_tokens))),
      positions(make_array<std::int32_t>(device, static_cast<std::size_t>(limits.max_num_batched_tokens))),
      slot_mapping(make_array<std::int64_t>(device, static_cast<std::size_t>(limits.max_num_batched_tokens))),
      prefill(make_attention(device, limits.max_num_seqs, max_blocks_per_seq)),
      decode(make_attention(device, limits.max_num_seqs, max_blocks_per_seq)),
      device_(device) {
  if (limits.decode_tokens == 1) return;
  decode.tree_masks = make_array<std::uint64_t>(device, static_cast<std::size_t>(limits.max_num_batched_tokens));
  decode.tree_sizes = make_array<std::int32_t>(device, static_cast<std::size_t>(limits.max_num_seqs));
}

void GpuStepInputs::upload_attention(const AttentionInputs& inputs, const Attention& to) {
  if (inputs.num_seqs == 0) return;
  upload_values(*device_, to.query_start_loc, inputs.query_start_loc);
  upload_values(*device_, to.context_lens, inputs.context_lens);
  upload_values(*device_, to.block_tables, inputs.block_tables);
  upload_values(*device_, to.tree_masks, inputs.tree_masks);
  upload_values(*device_, to.tree_sizes, inputs.tree_sizes);
}

void GpuStepInputs::upload(const StepInputs& inputs) {
  upload_values(*device_, token_ids, inputs.token_ids());
  upload_values(*device_, positions, inputs.positions());
  upload_values(*device_, slot_mapping, inputs.slot_mapping());
  upload_attention(inputs.attention(Phase::prefill), prefill);
  upload_attention(inputs.attention(Phase::decode), decode);
}

}  // namespace dculab::engine
