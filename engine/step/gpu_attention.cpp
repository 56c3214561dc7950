#include "engine/step/gpu_attention.hpp"

#include <algorithm>

namespace dculab::engine {

int longest_query(const AttentionInputs& inputs) {
  int longest = 0;
  for (std::size_t i = 0; i + 1 < inputs.query_start_loc.size(); ++i)
    longest = std::max(longest, inputs.query_start_loc[i + 1] - inputs.query_start_loc[i]);
  return longest;
}

int longest_context(const AttentionInputs& inputs) {
  return inputs.context_lens.empty() ? 0 : *std::ranges::max_element(inputs.context_lens);
}

kernels::gpu::DecodeQueries decode_queries(const AttentionInputs& inputs, const GpuStepInputs::Attention& on_device,
                                           int first, int count) {
  const auto index = static_cast<std::size_t>(first);
  const std::int32_t begin = inputs.query_start_loc[index];
  kernels::gpu::DecodeQueries queries{
      .start_loc = on_device.query_start_loc.as<std::int32_t>() + first,
      .num_tokens = inputs.query_start_loc[index + static_cast<std::size_t>(count)] - begin,
      .max_tokens_per_seq = longest_query(inputs)};
  if (inputs.tree_sizes.empty()) return queries;
  queries.tree_masks = on_device.tree_masks.as<std::uint64_t>() + begin;
  queries.tree_sizes = on_device.tree_sizes.as<std::int32_t>() + first;
  return queries;
}

kernels::gpu::Output offset_by(const kernels::gpu::Output& tensor, std::int64_t value) {
  return {static_cast<std::byte*>(tensor.data) + value * bits(tensor.dtype) / 8, tensor.dtype};
}

float GpuAttention::scale() const { return static_cast<float>(layer.score_scale()); }

std::byte* GpuAttention::first_row(std::byte* rows, std::int64_t row_values) const {
  return rows + inputs.first_token * row_values * bits(activation_dtype) / 8;
}

kernels::gpu::PagedAttention GpuAttention::decode(int first, int count) const {
  const std::int64_t first_token = inputs.query_start_loc[static_cast<std::size_t>(first)];
  const auto of_sequence = [&](std::byte* rows, std::int64_t row_values) {
    return first_row(rows, row_values) + first_token * row_values * bits(activation_dtype) / 8;
  };
  const bool has_several = longest_query(inputs) > 1 || !inputs.tree_sizes.empty();
  return {.q = {of_sequence(qkv, q_stride()), activation_dtype},
          .q_stride = q_stride(),
          .cache = cache,
          .block_tables = on_device.block_tables.as<std::int32_t>() + std::ptrdiff_t{first} * inputs.max_blocks_per_seq,
          .max_blocks_per_seq = inputs.max_blocks_per_seq,
          .context_lens = on_device.context_lens.as<std::int32_t>() + first,
          .max_context_len = longest_context(inputs),
          .out = {of_sequence(out, layer.heads.query_width()), activation_dtype},
          .num_seqs = count,
          .num_heads = layer.heads.num_attention_heads,
          .scale = scale(),
          .score_cap = kernels::gpu::ScoreCap(static_cast<float>(layer.logit_soft_cap)),
          .alibi_slopes = alibi_slopes,
          .sliding_window = layer.sliding_window,
          .heads_per_workgroup = tile.query_heads,
          .partition_tokens = tile.partition_tokens,
          .workspace = workspace,
          .queries = has_several ? decode_queries(inputs, on_device, first, count) : kernels::gpu::DecodeQueries()};
}

kernels::gpu::PrefillAttention GpuAttention::prefill() const {
  return {.q = {first_row(qkv, q_stride()), activation_dtype},
          .q_stride = q_stride(),
          .cache = cache,
          .block_tables = on_device.block_tables.as<std::int32_t>(),
          .max_blocks_per_seq = inputs.max_blocks_per_seq,
          .query_start_loc = on_device.query_start_loc.as<std::int32_t>(),
          .context_lens = on_device.context_lens.as<std::int32_t>(),
          .max_query_len = longest_query(inputs),
          .out = {first_row(out, layer.heads.query_width()), activation_dtype},
          .num_seqs = inputs.num_seqs,
          .num_heads = layer.heads.num_attention_heads,
          .scale = scale(),
          .score_cap = kernels::gpu::ScoreCap(static_cast<float>(layer.logit_soft_cap)),
          .alibi_slopes = alibi_slopes,
          .sliding_window = layer.sliding_window};
}

}  // namespace dculab::engine
