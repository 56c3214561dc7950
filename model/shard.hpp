// A device's part of a model that several devices share, by Megatron's split of every layer: heads, KV heads (at least
// one each), MLP width and vocabulary, each divided by the devices. Its steps (model/plan_step.hpp) have the sums that
// the devices exchange as ops: two all-reduces a layer and the embedding's, of tokens x hidden values, and an
// all-gather of the logits of the rows that are sampled. Experts in MXFP4 are divided by whole groups of 32 weights:
// where those do not divide, the last devices have fewer, and the part is that of the others. SGLang is taken to do the
// same.
//
// Sources: Shoeybi et al. 2019, "Megatron-LM", section 3; vLLM's vocab_parallel_embedding.py, logits_processor.py and
// models/gpt_oss.py (per_rank_intermediate_size).
#pragma once

#include <string>
#include <vector>

#include "model/model_shape.hpp"

namespace dculab {

// Everything that does not divide, whole groups of the layers' weights among it; empty when all does.
[[nodiscard]] std::vector<std::string> shard_problems(const ModelShape& model, WeightFormat layers, int devices);

// The part of each device, with the layers' weights in that format. Precondition: shard_problems is empty.
[[nodiscard]] ModelShape shard(const ModelShape& model, WeightFormat layers, int devices);

}  // namespace dculab
