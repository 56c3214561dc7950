// A model with two sets of KV heads (core/groups_by_load.hpp): what the second set, with fewer of them, is and takes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/engine_options.hpp"
#include "core/units.hpp"
#include "model/model_shape.hpp"

namespace dculab {

// What the second set has of its own beside the first: K and V projections, as heads that are merged by their mean; or
// a whole model, as one that was merged in other ways or trained further.
enum class FewWeights : std::uint8_t { kv_projections, all };

struct FewHeads {
  ModelShape model;
  FewWeights weights = FewWeights::kv_projections;
};

// Why a model cannot be served with both; empty when it can. Of devices that share the model, each one's part.
[[nodiscard]] std::vector<std::string> few_heads_problems(const ModelShape& many, const ModelShape& few,
                                                          const EngineOptions& options);

// Tokens of few heads in the bytes of one of many. Precondition for the rest: few_heads_problems is empty.
[[nodiscard]] int few_tokens_per_slot(const ModelShape& many, const ModelShape& few);

// The options of steps with few heads: blocks of as many bytes hold more tokens.
[[nodiscard]] EngineOptions options_of_few(EngineOptions options, const ModelShape& many, const ModelShape& few);

// Weights in memory beside those of many heads.
[[nodiscard]] Bytes few_heads_footprint(const ModelShape& many, const FewHeads& few, WeightFormat layers);

}  // namespace dculab
