// Memory that K and V of a model take, and the states of its recurrent layers.
#pragma once

#include "core/engine_options.hpp"
#include "core/kv/retention.hpp"
#include "model/model_shape.hpp"

namespace dculab {

// Bytes of K and V that one token leaves in all layers; of compressed entries, its share of them.
[[nodiscard]] Bytes kv_bytes_per_token(const ModelShape& model, Dtype kv_cache_dtype);

// What a policy keeps beside each block, in all layers: critical blocks' bounds of keys; 0 of others.
[[nodiscard]] Bytes kv_bytes_beside_block(const ModelShape& model, RetentionPolicy policy);

// One block in all layers: K and V of its tokens, and what the policy keeps beside them.
[[nodiscard]] Bytes kv_block_bytes(const ModelShape& model, const EngineOptions& options);

// Bytes that each running sequence holds besides its KV blocks: with kivi4 and kivi2, its newest `residual_tokens`
// tokens in F16, in all layers; with compressed entries, the tokens of its windows.
[[nodiscard]] Bytes kv_residual_bytes(const ModelShape& model, Dtype kv_cache_dtype, int residual_tokens);

// Blocks of a sequence: its states, and what is kept of layers with windows where the program frees what has left them.
// Of windows that differ the longest counts.
[[nodiscard]] KvDemand kv_demand(const ModelShape& model, Dtype kv_cache_dtype, bool frees_windows);

// Bytes of state that each running sequence holds in gated delta nets: a matrix for each head in F32, and the newest
// tokens that their convolutions see; and of what compressed entries are made from, until they are complete.
[[nodiscard]] Bytes recurrent_state_bytes(const ModelShape& model);

}  // namespace dculab
