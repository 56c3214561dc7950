// How many bytes of the KV cache a sequence keeps, and a decode of it loads.
#pragma once

#include "core/engine_options.hpp"
#include "model/model_shape.hpp"

namespace dculab::study {

// What a sequence of `context` tokens keeps in the cache.
[[nodiscard]] Bytes kv_bytes_per_sequence(const ModelShape& model, const EngineOptions& options, int context);

// What a decode of it loads: what is kept, or critical blocks and the bounds of all blocks.
[[nodiscard]] Bytes kv_bytes_loaded(const ModelShape& model, const EngineOptions& options, int context);

// Sizes of a policy that were not given become those of the bytes that critical blocks load of `context` tokens with
// kv_budget: sinks are part of them, heavy hitters half.
void share_budget(EngineOptions& options, const ModelShape& model, int context);

}  // namespace dculab::study
