#include "sim/tables/latent_forms.hpp"

#include <algorithm>

#include "model/plan_step.hpp"
#include "sim/cost/step_price.hpp"

namespace dculab::sim {
namespace {

// What the two forms do not share.
[[nodiscard]] bool is_of_form(const Op& op) {
  return op.weight == WeightSlot::kv_b_proj || op.attention.is_latent || !op.attention.is_paged;
}

[[nodiscard]] Seconds form_time(const Machine& machine, const ModelShape& model, EngineOptions options,
                                const Batch& batch, LatentForm form) {
  options.prefill_latents = options.decode_latents = form;
  const StepPlan plan = plan_step(model, options, batch);
  const StepPrice price = price_step(machine, plan);
  const auto latent = std::ranges::find_if(model.kinds, [](const LayerKind& kind) { return kind.mla() != nullptr; });
  const auto kind = static_cast<std::uint8_t>(latent - model.kinds.begin());
  Seconds sum;
  for (std::size_t op = 0; op < plan.ops.size(); ++op)
    if (plan.ops[op].layer_kind == kind && plan.ops[op].kind != OpKind::rope_and_cache && is_of_form(plan.ops[op]))
      sum += price.ops[op].seconds;
  return sum;
}

// One new token is a decode, more are a chunk of a prefill.
[[nodiscard]] Batch batch_of(int sequences, int context, int new_tokens) {
  Batch batch;
  batch.sequences.assign(static_cast<std::size_t>(sequences),
                         {.phase = new_tokens == 1 ? Phase::decode : Phase::prefill,
                          .num_computed_tokens = context - new_tokens,
                          .num_new_tokens = new_tokens});
  return batch;
}

}  // namespace

std::vector<LatentForms> latent_forms(const Machine& machine, const ModelShape& model, const EngineOptions& options,
                                      int batch, int context, std::span<const int> new_tokens) {
  std::vector<LatentForms> rows;
  for (const int count : new_tokens) {
    const Batch step = batch_of(batch, context, count);
    rows.push_back({.new_tokens = count,
                    .expanded = form_time(machine, model, options, step, LatentForm::expand),
                    .absorbed = form_time(machine, model, options, step, LatentForm::absorb)});
  }
  return rows;
}

}  // namespace dculab::sim
