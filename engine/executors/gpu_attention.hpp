// What the attention kernels of the GPU are given for the sequences of one phase of a step.
#pragma once

#include <cstddef>

#include "core/engine_options.hpp"
#include "engine/executors/gpu_buffers.hpp"
#include "kernels/gpu/args.hpp"
#include "lower/attention_walk.hpp"
#include "model/layer_kind.hpp"

namespace dculab::engine {

struct GpuAttention {
  const Gqa& layer;
  lower::AttentionTile tile;                  // as it was priced
  Dtype activation_dtype = Dtype::f16;        // of Q and of the result
  kernels::KvCacheView cache;                 // of the layer
  const AttentionInputs& inputs;              // of the phase, on the host
  const GpuStepInputs::Attention& on_device;  // the same
  std::byte* qkv = nullptr;                   // [tokens, query_width + 2 * kv_width], of all tokens of the step
  std::byte* out = nullptr;                   // [tokens, query_width], likewise
  float* workspace = nullptr;                 // decode: see paged_attention_workspace()
  const float* alibi_slopes = nullptr;        // [num_attention_heads], or null

  [[nodiscard]] kernels::gpu::PagedAttention decode() const;
  [[nodiscard]] kernels::gpu::PrefillAttention prefill() const;

 private:
  [[nodiscard]] std::int64_t q_stride() const { return layer.heads.query_width() + 2 * layer.heads.kv_width(); }
  [[nodiscard]] float scale() const;
  // Where the phase's tokens begin in a tensor of `row_values` values per token.
  [[nodiscard]] std::byte* first_row(std::byte* rows, std::int64_t row_values) const;
};

}  // namespace dculab::engine
