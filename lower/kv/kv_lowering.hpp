// What formats and policies of the KV cache change in how kernels do the ops of a layer. One file for each that changes
// something; kv_lowering.cpp lists them.
#pragma once

#include "core/op.hpp"
#include "core/step_plan.hpp"
#include "lower/device.hpp"
#include "lower/kernel_library.hpp"
#include "lower/launch.hpp"

namespace dculab::lower {

struct KvFormatLowering {
  // On a CPU: adds to rope_and_cache what it costs to write the new tokens. Null: nothing but their bytes.
  void (*add_cache_work)(Launch& launch, const Op& op) = nullptr;
  // Of our own GPU kernels: adds to a launch those that come with it. Null: none.
  void (*add_gpu_kernels)(const Op& op, const StepPlan& step, Launch& launch) = nullptr;
  // Of the one that writes the new tokens, from activations of that format: adds what it asks memory for. Null: new K
  // and V, and the rows they go to.
  void (*add_gpu_writes)(Streams& streams, const Op& op, Dtype activations) = nullptr;
};
[[nodiscard]] const KvFormatLowering& kv_format_lowering(Dtype dtype);

extern const KvFormatLowering kKiviLowering, kKvQuantLowering;

// Of rope_and_cache: what a policy keeps of the new tokens, behind what is written to the cache. Null: nothing.
[[nodiscard]] const Operand* kept_beside_cache(const Op& op);

// Fills in a launch that asks for each byte once. Null where the kind of op is no policy's own.
using KvOpLowering = void (*)(const Op& op, const Device& device, Launch& launch);
[[nodiscard]] KvOpLowering kv_op_lowering(OpKind kind);

void lower_bounds_update(const Op& op, const Device& device, Launch& launch);
void lower_block_choice(const Op& op, const Device& device, Launch& launch);

// Whether attention walks over chosen blocks: each KV head its own, that lie anywhere.
[[nodiscard]] bool walks_chosen_blocks(const Op& op, const StepPlan& step);

// ---- H2O's pass over the keys: OpKind::attention_scores ----

// Each new token walks what it sees, and the group walks it together.
[[nodiscard]] AttentionTile heavy_hitters_tile(const AttentionWork& work);

// On a CPU (kernels/cpu/kv/heavy_hitters.cpp) it takes one query head and one token at a time: each score is a sum over
// the lanes of a vector, 10 full vectors where attention's 64 scores of a tile take next to none, and K is widened for
// each head again, neither shaped nor gathered. `per_score`: instructions of a softmax.
void score_head_by_head(Arithmetic& arithmetic, double scores, int heads, double per_score);

// On a GPU (kernels/gpu/kv/heavy_hitters.hip.hpp) the same kernel chooses what goes where a sequence is full, and reads
// for that where its tokens stand.
void add_choice_of_tokens(const Op& op, const StepPlan& step, Launch& launch);

}  // namespace dculab::lower
