// What a model drafts with that has parts for it: Medusa's heads on its last hidden state (Cai et al. 2024,
// arXiv:2401.10774), and DeepSeek's layer behind the last (DeepSeek-V3, arXiv:2412.19437, section 2.2).
//
//   Medusa head i   logits_i = W_i (h + silu(F_i h + b_i)),   F_i [hidden, hidden], W_i [vocabulary, hidden]: one token
//                   further each, all from the hidden state of the last token; as FasterDecoding/Medusa and vLLM have
//                   them, whose heads do not share W
//   MTP             h' = layer(P [norm(embedding of the next token); norm(h)]),   P [hidden, 2 hidden]; logits by the
//                   model's own head, and its own embedding; run once for each further token, over a KV cache of its
//                   own
//
// Devices that share the model have each a part of W_i and of the layer, and the whole of F_i and P, as in vLLM.
#pragma once

#include "core/engine_options.hpp"
#include "core/step_plan.hpp"
#include "model/model_shape.hpp"

namespace dculab {

// The layer that predicts further tokens as a model of one layer, which is alike the last of `model`'s own.
// Precondition: model.num_nextn_predict_layers > 0.
[[nodiscard]] ModelShape mtp_shape(const ModelShape& model);

// The step of such a model, or of a device's part of it, that advances `plan.batch`: plan_step_into with the norms and
// the product that bring embedding and hidden state together.
void plan_mtp_step_into(StepPlan& plan, const ModelShape& mtp, const EngineOptions& options);

// Of all such layers of a device's part of `model`: what they have beside its embedding and head.
[[nodiscard]] Bytes mtp_footprint(const ModelShape& mtp, int num_layers, WeightFormat layers);

// Medusa's heads over the last hidden state of each sequence of `plan.batch`; `model` may be a device's part.
void plan_medusa_heads_into(StepPlan& plan, const ModelShape& model, const EngineOptions& options, int num_heads);

// Of `num_heads` heads, in the model's own dtype.
[[nodiscard]] Bytes medusa_footprint(const ModelShape& model, int num_heads);

}  // namespace dculab
