// What our engine keeps for each sequence of a step beside the KV blocks, as the policy has it. Engine and simulator
// take it off what the blocks may use. What a format keeps of a sequence is model/kv/kv_bytes.hpp's.
#pragma once

#include "core/engine_options.hpp"
#include "lower/device.hpp"
#include "model/model_shape.hpp"

namespace dculab::lower {

// Of one sequence, in all layers, at its longest. Lists of a step's batch, some bytes a sequence or token, do not
// count.
[[nodiscard]] Bytes kv_policy_memory(DeviceKind device, const ModelShape& model, const EngineOptions& options);

// ---- Of each policy ----

// K and V of the sinks before any rotation, in F32.
[[nodiscard]] Bytes sinks_memory(const ModelShape& model, const KvRetention& retention);

// H2O: places of a sequence's tokens, no more than its text can be long. Each has a sum and a position, per layer and
// KV head; on a GPU the slot that is taken next is kept as well.
[[nodiscard]] int heavy_hitter_places(const KvRetention& retention, int block_size, int longest_text);
[[nodiscard]] Bytes heavy_hitters_memory(DeviceKind device, const ModelShape& model, const KvRetention& retention,
                                         int block_size);

// Of the one layer that is chosen for: upper bounds of all blocks, the lists of those that were chosen (on a CPU also
// their places in the sequence), and queries side by side.
[[nodiscard]] Bytes critical_blocks_memory(DeviceKind device, const ModelShape& model, const KvRetention& retention,
                                           int block_size);

}  // namespace dculab::lower
