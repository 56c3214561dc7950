#include "study/validate/published_experts.hpp"

#include <vector>

#include "core/error.hpp"
#include "model/plan_step.hpp"
#include "study/validate/published_weights.hpp"

namespace dculab::study {
namespace {

[[nodiscard]] int size_of(const std::optional<int>& value, const char* column) {
  if (!value || *value < 1) throw InputError(std::string("column ") + column + " is missing");
  return *value;
}

[[nodiscard]] bool is_of_the_kernel(const Op& op) {
  return op.groups.count > 0 || op.kind == OpKind::combine_experts || op.kind == OpKind::route_tokens ||
         (op.kind == OpKind::activation_mul && op.input == Buffer::expert_up);
}

}  // namespace

sim::MeasuredRun fused_moe_run(const config::PublishedPoint& point) {
  if (!point.num_experts || !point.num_experts_per_tok)
    throw InputError(
        "fused_moe: the notes must say how many experts there are, and how many a token goes to (E=8 top-k=2)");
  const PublishedWeights weights = published_weights(point.weights);
  ModelShape model{.hidden_size = size_of(point.k, "k"), .vocab_size = 1, .dtype = Dtype::bf16};
  set_layers(model, 1,
             {.attention = Gqa{.heads = {1, 1, 1}},
              .mlp = {.intermediate_size = 0},
              .experts = Experts{.num_experts = *point.num_experts,
                                 .num_experts_per_tok = *point.num_experts_per_tok,
                                 .intermediate_size = size_of(point.n, "n")}});
  EngineOptions options;
  options.weights = weights.format;
  options.activation_dtype = bits(weights.format.dtype) >= 16 ? weights.format.dtype : Dtype::bf16;
  StepPlan plan = plan_step(model, options, uniform_batch(Phase::prefill, 1, size_of(point.m, "m")));
  std::erase_if(plan.ops, [](const Op& op) { return !is_of_the_kernel(op); });
  return sim::kernel_run(std::move(plan));
}

}  // namespace dculab::study
