// A model whose plan can be worked out by hand, and its ops.
#pragma once

#include <algorithm>
#include <string_view>

#include "model/plan_step.hpp"
#include "tests/support/catch.hpp"

namespace dculab {

constexpr int kSmallHidden = 64, kSmallHeads = 4;  // of models with latents

// Small enough to count by hand: 4 query heads, 2 KV heads.
inline ModelShape small_model() {
  ModelShape model;
  model.name = "small";
  model.hidden_size = 32;
  model.kinds[0].mlp.intermediate_size = 80;
  model.layers.assign(3, 0);
  model.kinds[0].gqa().heads = {4, 2, 8};
  model.vocab_size = 100;
  model.max_position_embeddings = 4096;
  return model;
}

inline const Op& find(const StepPlan& plan, std::string_view name) {
  const auto found = std::find_if(plan.ops.begin(), plan.ops.end(), [&](const Op& op) { return op.name == name; });
  REQUIRE(found != plan.ops.end());
  return *found;
}

inline bool has(const StepPlan& plan, std::string_view name) {
  return std::ranges::find(plan.ops, name, &Op::name) != plan.ops.end();
}

inline const Operand& operand(const Op& op, OperandRole role) {
  const auto all = op.operands();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Operand& each) { return each.role == role; });
  REQUIRE(found != all.end());
  return *found;
}

inline double bytes_of(const Op& op, OperandRole role) {
  Bytes bytes;
  for (const Operand& operand : op.operands())
    if (operand.role == role) bytes += operand.unique;
  return bytes.value();
}

}  // namespace dculab
