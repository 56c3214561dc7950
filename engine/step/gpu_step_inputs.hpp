// The inputs of a step on the device, allocated once for the largest step.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "core/engine_options.hpp"
#include "engine/memory/device_memory.hpp"
#include "engine/step/step_inputs.hpp"
#include "kernels/gpu/device.hpp"
#include "lower/dculab_gpu/step_buffers.hpp"

namespace dculab::engine {

struct GpuStepLimits {
  int max_num_batched_tokens = 0;
  int max_num_seqs = 0;
  int decode_tokens = 1;  // new tokens of a sequence that is decoded, at most: with guesses that are verified
  LatentForm prefill_latents = LatentForm::expand;       // absorbed, all tokens of a step may have queries over latents
  Bytes expanded_kv = lower::dculab_gpu::kMostExpanded;  // that latents expand to at a time; one head's at least
  // For partial results of decode attention; one sequence's at least. Where a step needs more, runs of its sequences
  // are served one after the other.
  Bytes decode_partials = lower::dculab_gpu::kMostPartials;
};

// Tokens of a step whose logits may be wanted, at most.
[[nodiscard]] constexpr int logits_rows(const GpuStepLimits& limits) {
  const std::int64_t rows = std::int64_t{limits.max_num_seqs} * limits.decode_tokens;
  return static_cast<int>(std::min<std::int64_t>(rows, std::max(limits.max_num_seqs, limits.max_num_batched_tokens)));
}

// Tokens of a step that have queries over latents, at most.
[[nodiscard]] constexpr int latent_tokens(const GpuStepLimits& limits) {
  return limits.prefill_latents == LatentForm::absorb ? limits.max_num_batched_tokens : logits_rows(limits);
}

// StepInputs on the device.
class GpuStepInputs {
 public:
  GpuStepInputs(const std::shared_ptr<kernels::gpu::Device>& device, const GpuStepLimits& limits,
                int max_blocks_per_seq);

  // Starts the copies; `inputs` must stay as it is until the device is synchronized.
  void upload(const StepInputs& inputs);

  struct Attention {
    DeviceMemory query_start_loc;  // [max_num_seqs + 1]
    DeviceMemory context_lens;     // [max_num_seqs]
    DeviceMemory block_tables;     // [max_num_seqs, max_blocks_per_seq]
    // Decode, where it may have several tokens: as in AttentionInputs.
    DeviceMemory tree_masks{};  // [tokens]
    DeviceMemory tree_sizes{};  // [max_num_seqs]
  };
  DeviceMemory token_ids;     // [tokens]
  DeviceMemory positions;     // [tokens]
  DeviceMemory slot_mapping;  // [tokens]
  Attention prefill, decode;

 private:
  void upload_attention(const AttentionInputs& inputs, const Attention& to);

  std::shared_ptr<kernels::gpu::Device> device_;
};

}  // namespace dculab::engine
