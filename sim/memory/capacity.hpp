// How many sequences fit in a machine's memory.
//
//   KV budget = memory * gpu_memory_utilization - weights - activations - kept apart - buffers
//   kept apart = max_num_seqs * (kv_residual_bytes of kivi4 and kivi2 + our own engine's memory of a policy,
//                lower/kv/kv_memory)
//   blocks    = floor(KV budget / (block_size * KV bytes per token))
//   sequences = floor(blocks / ceil(demand(tokens) / block_size))
//   buffers   = of our own engine: what latents expand to, partial results of decode attention (lower/dculab_cpu,
//               lower/dculab_gpu); of other programs nothing is known
//
// The demand is the number of tokens. States of gated delta nets, and windows of compressed entries, take blocks of the
// sequences that run; where the program frees what has left the windows of layers, tokens beyond take less
// (vLLM, v1/kv_cache_interface.py: MambaSpec, SlidingWindowSpec; what a chunk of a prompt holds beside is not counted).
// With prefix caching all tokens count: what is remembered of windows that were left is not modelled.
//
//   activations = max_num_batched_tokens * (3 hidden + Q, K, V + MLP inputs) values + max_num_seqs * vocabulary F32,
//                 of drafted tokens too
//
// The last block of a sequence is held whole: block rounding. As vLLM's determine_num_available_blocks, with the
// activations counted instead of profiled. Processes that share a CPU machine have as much of its memory each.
#pragma once

#include <cstdint>

#include "core/engine_options.hpp"
#include "core/units.hpp"
#include "model/model_shape.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::sim {

// What drafts for a model has on a device, beside it (sim/speculation/draft_work.hpp).
struct DraftMemory {
  Bytes weights;
  Bytes activations;
  Bytes kv_bytes_per_token;
};

struct Capacity {
  Bytes weights;  // with the drafter's, as activations and blocks
  Bytes activations;
  Bytes kept_apart;   // of max_num_seqs sequences, beside their blocks: what format and policy keep of each
  Bytes buffers;      // of our own engine
  Bytes kv_budget;    // of the blocks; 0 when the others leave nothing
  Bytes block_bytes;  // one KV block of all layers
  std::int64_t num_blocks = 0;
  KvDemand demand;
  Bytes state;  // of each running sequence, in its blocks: recurrent states, windows of compressed entries
  // Of the length asked for; max_num_seqs is not applied. What is kept apart of more than that many counts, too.
  std::int64_t max_sequences = 0;
  double wasted_share = 0;  // of their KV memory: unused slots of last blocks
};

// Precondition: tokens_per_sequence >= 1.
[[nodiscard]] Capacity capacity(const Machine& machine, const ModelShape& model, const EngineOptions& options,
                                int tokens_per_sequence, const DraftMemory& draft = {});

// Activations of a step at its largest.
[[nodiscard]] Bytes activation_footprint(const ModelShape& model, const EngineOptions& options);

}  // namespace dculab::sim
