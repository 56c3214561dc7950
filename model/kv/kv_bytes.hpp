// Bytes of a KV block: K and V of its tokens, and what a policy keeps beside them. Defined in kv_plans.cpp.
#pragma once

#include "core/engine_options.hpp"
#include "model/model_shape.hpp"

namespace dculab {

// What a policy keeps of each block in all layers: critical blocks' bounds of keys; 0 of others.
[[nodiscard]] Bytes kv_bytes_beside_block(const ModelShape& model, RetentionPolicy policy);

// Of one block in all layers.
[[nodiscard]] Bytes kv_block_bytes(const ModelShape& model, const EngineOptions& options);

}  // namespace dculab
