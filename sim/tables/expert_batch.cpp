#include "sim/tables/expert_batch.hpp"

#include <algorithm>

#include "model/plan_step.hpp"
#include "sim/cost/step_price.hpp"
#include "sim/memory/bandwidth.hpp"

namespace dculab::sim {
namespace {

constexpr int kMostTokens = 1 << 20;

struct ExpertStep {
  bool is_compute_bound = false;
  bool widens_longer = false;
  GroupedWork groups;
  std::int64_t rows = 0;
};

// The arithmetic of the op's rows. Weights that are widened before they are multiplied are widened once a tile, however
// few rows it has: how long that takes is of the format, not of the batch.
[[nodiscard]] Seconds multiplying(const Machine& machine, const StepPlan& plan, Op op, Bytes footprint) {
  if (op.activations == ActivationMode::exact) op.weight_format = {op.activation_dtype, 0};
  return price_op(machine, plan, op, footprint).compute;
}

// One token of each of `tokens` sequences; their attention is not priced.
[[nodiscard]] ExpertStep expert_step(const Machine& machine, const ModelShape& layer, const EngineOptions& options,
                                     int tokens) {
  StepPlan plan = plan_step(layer, options, uniform_batch(Phase::decode, tokens, 1));
  const Bytes footprint = step_footprint(plan);
  ExpertStep step;
  const std::size_t dram = machine.memory.size() - 1;
  Seconds compute, with_widening, memory;
  for (const Op& op : plan.ops) {
    if (op.weight != WeightSlot::expert_up_proj && op.weight != WeightSlot::expert_down_proj) continue;
    const OpPrice price = price_op(machine, plan, op, footprint);
    compute += multiplying(machine, plan, op, footprint);
    with_widening += price.compute;
    memory += price.bytes[dram] / deliverable(machine, dram, machine.compute_units);
    step.groups = op.groups;
    step.rows = op.m;
  }
  step.is_compute_bound = compute > memory;
  step.widens_longer = with_widening > memory;
  return step;
}

}  // namespace

std::optional<ExpertBatch> compute_bound_batch(const Machine& machine, const ModelShape& model,
                                               const EngineOptions& options) {
  const auto found = std::ranges::find_if(model.kinds, [](const LayerKind& kind) { return kind.experts.has_value(); });
  if (found == model.kinds.end()) return std::nullopt;
  ModelShape layer = model;
  layer.kv_sources.clear();
  set_layers(layer, 1, *found);
  int above = 1;
  while (above < kMostTokens && !expert_step(machine, layer, options, above).is_compute_bound) above *= 2;
  if (!expert_step(machine, layer, options, above).is_compute_bound) return std::nullopt;
  for (int below = above / 2; above - below > 1;) {
    const int middle = below + (above - below) / 2;
    (expert_step(machine, layer, options, middle).is_compute_bound ? above : below) = middle;
  }
  const ExpertStep step = expert_step(machine, layer, options, above);
  return ExpertBatch{.tokens = above,
                     .touched = step.groups.touched,
                     .mean_rows = static_cast<double>(step.rows) / step.groups.touched,
                     .longest_rows = step.groups.longest_rows,
                     .widens_longer = above > 1 && expert_step(machine, layer, options, above - 1).widens_longer};
}

}  // namespace dculab::sim
