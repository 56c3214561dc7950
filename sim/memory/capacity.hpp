// How many sequences fit in a machine's memory.
//
//   KV budget = memory * gpu_memory_utilization - weights - activations - residuals
//   residuals = max_num_seqs * (kv_residual_bytes + recurrent_state_bytes): kivi4 and kivi2, gated delta nets; 0
//               otherwise
//   blocks    = floor(KV budget / (block_size * KV bytes per token))
//   sequences = floor(blocks / ceil(tokens / block_size))
//   activations = max_num_batched_tokens * (3 hidden + Q, K, V + MLP inputs) values + max_num_seqs * vocabulary F32
//
// The last block of a sequence is held whole: block rounding. As vLLM's determine_num_available_blocks, with the
// activations counted instead of profiled.
#pragma once

#include <cstdint>

#include "core/engine_options.hpp"
#include "core/units.hpp"
#include "model/model_shape.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::sim {

struct Capacity {
  Bytes weights;
  Bytes activations;
  Bytes residuals;    // of max_num_seqs sequences: kivi4, kivi2: the newest tokens, in F16; states of delta nets
  Bytes kv_budget;    // of the blocks; 0 when the others leave nothing
  Bytes block_bytes;  // one KV block of all layers
  std::int64_t num_blocks = 0;
  std::int64_t max_sequences = 0;  // of the length asked for; max_num_seqs is not applied, except to residuals
  double wasted_share = 0;         // of their KV memory: unused slots of last blocks
};

// Precondition: tokens_per_sequence >= 1.
[[nodiscard]] Capacity capacity(const Machine& machine, const ModelShape& model, const EngineOptions& options,
                                int tokens_per_sequence);

}  // namespace dculab::sim
