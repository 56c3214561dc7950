// The choices an engine makes that change the work of a step. Options that vLLM has carry vLLM's names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/dtype.hpp"
#include "core/eviction_order.hpp"
#include "core/expert_load.hpp"
#include "core/groups_by_load.hpp"
#include "core/kv/retention.hpp"
#include "core/kv/skip.hpp"
#include "core/speculative_config.hpp"
#include "core/units.hpp"

namespace dculab {

// How a GPU's decode attention shares its work out to workgroups, as far as that is the caller's choice.
struct AttentionSplit {
  // Context tokens that one workgroup walks; longer contexts are split and combined. 0 = never split.
  int partition_tokens = 512;
  // Query heads served by one workgroup; 0 = the whole group (Opt-GQA), 1 = one head (vLLM's v1/v2 kernels).
  int query_heads_per_workgroup = 0;

  friend bool operator==(const AttentionSplit&, const AttentionSplit&) = default;
};

// When waiting requests may join: at any step, or (as before Orca, OSDI 2022) when the whole batch has ended. A batch
// is who waits when it starts, as many as max_num_seqs and the KV blocks hold, whose prefill may take several steps.
enum class Batching : std::uint8_t { continuous, per_batch };

// What becomes of the KV cache of a sequence that must make room: computed once more, or copied to the host's memory
// and back. As in vLLM 0, where a preempted group of sequences was recomputed or swapped.
enum class PreemptionMode : std::uint8_t { recompute, swap };

// How multi-head latent attention runs: latents expanded to K and V of every head, or projections absorbed into the
// queries and outputs, over the latents themselves.
enum class LatentForm : std::uint8_t { expand, absorb };

struct EngineOptions {
  int block_size = 16;  // tokens per KV block, a power of two, 1 to 256
  Dtype kv_cache_dtype = Dtype::f16;
  int kv_residual_tokens = 128;  // kivi4, kivi2: the newest tokens, at most this many, stay in F16: 32, 64, 96 or 128
  KvRetention kv_retention;
  KvSkip kv_skip;
  bool enable_prefix_caching = false;
  PrefixEviction prefix_eviction = PrefixEviction::lru;
  WeightFormat weights;                                // of the layers' matrices
  ActivationMode activations = ActivationMode::exact;  // of matmuls whose weights go with it
  Dtype activation_dtype = Dtype::f16;                 // f32 in the CPU engine
  int max_num_seqs = 256;
  int max_num_batched_tokens = 2048;
  bool enable_chunked_prefill = true;
  Batching batching = Batching::continuous;
  double gpu_memory_utilization = 0.9;  // share of device memory for weights and KV cache
  PreemptionMode preemption_mode = PreemptionMode::recompute;
  Bytes swap_space = 4.0 * kGiB;  // of host memory for each device, with PreemptionMode::swap
  AttentionSplit attention_split;
  LatentForm prefill_latents = LatentForm::expand, decode_latents = LatentForm::absorb;
  SpeculativeConfig speculative_config;
  std::optional<GroupsByLoad> groups_by_load{};  // of a model with two sets of KV heads
  ExpertLoad expert_load;                        // of mixtures of experts: which of them the tokens choose

  [[nodiscard]] KvChoice kv() const { return {kv_cache_dtype, kv_retention.policy}; }
  // Whether sequences may hold blocks that others filled, so that nothing of them is freed early.
  [[nodiscard]] bool shares_blocks() const { return enable_prefix_caching || kv_skip.duplicate_prompts; }
  friend bool operator==(const EngineOptions&, const EngineOptions&) = default;
};

// Beyond the memory of any host.
inline constexpr Bytes kLargestSwapSpace = 1024 * 1024 * kGiB;

// KV blocks of `block_bytes` each that the host has room for, at most kMostBlocks: none unless sequences are swapped.
[[nodiscard]] int num_host_blocks(const EngineOptions& options, Bytes block_bytes);

// Everything that makes the options unusable, one sentence each; empty when they are sound.
[[nodiscard]] std::vector<std::string> problems(const EngineOptions& options);

}  // namespace dculab
