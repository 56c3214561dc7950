// How every executor walks a step plan: its ops in order, a layer's once a layer, each with the weights in its slot and
// the buffers that it names.
#pragma once

#include <stdexcept>
#include <string>

#include "core/step_plan.hpp"
#include "model/model_shape.hpp"

namespace dculab::engine {

// Values of a row of `buffer`; 0 where the model has no use for it. Rows of logits are those that are asked for; every
// other buffer has one a token.
[[nodiscard]] int width(const ModelShape& shape, Buffer buffer);

[[nodiscard]] constexpr std::size_t index(Buffer buffer) { return static_cast<std::size_t>(buffer); }
[[nodiscard]] constexpr std::size_t index(WeightSlot slot) { return static_cast<std::size_t>(slot); }

// That the op's buffers have rows of its shape: k values in, or n where k is 0, and n out.
void require_buffers(const Op& op, const ModelShape& shape);

// Calls execute(index) for the plan's ops of `stage`, in order.
template <class Execute>
void walk_stage(const StepPlan& plan, Stage stage, Execute&& execute) {
  for (std::size_t index = 0; index < plan.ops.size(); ++index)
    if (plan.ops[index].stage == stage) execute(index);
}

// A plan that was not made for an executor's model is a mistake of the program, not of its user. Throws
// std::invalid_argument: "plan: op 'o_proj' has another shape".
inline void require(bool holds, const Op& op, const char* what) {
  if (!holds) throw std::invalid_argument("plan: op '" + std::string(op.name) + "' " + what);
}

}  // namespace dculab::engine
