// What the attention kernels of the GPU are given for the sequences of one phase of a step.
#pragma once

#include <cstddef>

#include "core/engine_options.hpp"
#include "engine/step/gpu_step_inputs.hpp"
#include "kernels/gpu/args.hpp"
#include "lower/attention_walk.hpp"
#include "model/layer_kind.hpp"

namespace dculab::engine {

// The most new tokens of a sequence.
[[nodiscard]] int longest_query(const AttentionInputs& inputs);

// The longest context of a sequence; 0 without any.
[[nodiscard]] int longest_context(const AttentionInputs& inputs);

// The new tokens of `count` sequences from the `first` on.
[[nodiscard]] kernels::gpu::DecodeQueries decode_queries(const AttentionInputs& inputs,
                                                         const GpuStepInputs::Attention& on_device, int first,
                                                         int count);

// A tensor from value `value` on.
[[nodiscard]] kernels::gpu::Output offset_by(const kernels::gpu::Output& tensor, std::int64_t value);

struct GpuAttention {
  const Gqa& layer;
  lower::AttentionTile tile;                  // as it was priced
  Dtype activation_dtype = Dtype::f16;        // of Q and of the result
  kernels::KvCacheView cache;                 // of the layer
  const AttentionInputs& inputs;              // of the phase, on the host
  const GpuStepInputs::Attention& on_device;  // the same
  std::byte* qkv = nullptr;                   // [tokens, projected_width], of all tokens of the step
  std::byte* out = nullptr;                   // [tokens, query_width], likewise
  float* workspace = nullptr;                 // decode: see paged_attention_workspace()
  const float* alibi_slopes = nullptr;        // [num_attention_heads], or null

  // Q of the phase's first token.
  [[nodiscard]] kernels::gpu::Input queries() const { return {first_row(qkv, q_stride()), activation_dtype}; }

  // Of `count` sequences from the `first` on.
  [[nodiscard]] kernels::gpu::PagedAttention decode(int first, int count) const;
  [[nodiscard]] kernels::gpu::PrefillAttention prefill() const;

 private:
  [[nodiscard]] std::int64_t q_stride() const { return layer.projected_width(); }
  [[nodiscard]] float scale() const;
  // Where the phase's tokens begin in a tensor of `row_values` values per token.
  [[nodiscard]] std::byte* first_row(std::byte* rows, std::int64_t row_values) const;
};

}  // namespace dculab::engine
