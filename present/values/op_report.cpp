#include "present/values/op_report.hpp"

#include <algorithm>

#include "lower/lower.hpp"
#include "sim/compute/peak.hpp"

namespace dculab::present {

std::string op_label(const Op& op, const ModelShape& model) {
  const std::string kind = op.stage == Stage::layer ? kind_label(model, op.layer_kind) : "";
  return std::string(op.name) + (kind.empty() ? "" : ", " + kind);
}

std::vector<std::pair<std::string, Bytes>> PricedOp::bytes() const {
  std::vector<std::pair<std::string, Bytes>> by_level;
  for (std::size_t level = 0; level < machine.memory.size(); ++level)
    by_level.emplace_back(machine.memory[level].name, price.bytes[level] * op.count);
  return by_level;
}

std::vector<std::pair<std::string, double>> PricedOp::hit_rates() const {
  std::vector<std::pair<std::string, double>> by_level;
  for (std::size_t level = 0; level < machine.memory.size(); ++level)
    by_level.emplace_back(machine.memory[level].name, price.hit_rate[level]);
  return by_level;
}

std::vector<std::pair<std::string, Seconds>> PricedOp::terms() const {
  std::vector<std::pair<std::string, Seconds>> terms;
  const auto add = [&](const char* name, Seconds time) { terms.emplace_back(name, op.count * time); };
  add("launch", price.launch);
  add("look_ups", price.lookups);
  add("chain", price.chain);
  add("cold_misses", price.cold_misses);
  add("split_k_reduction", price.split_k_reduction);
  add("compute", price.compute);
  add("memory", price.memory);
  add("dram_in_turn", price.in_turn);
  add("latency", price.latency);
  return terms;
}

std::optional<double> PricedOp::empty_slots() const {
  if (op.kind != OpKind::attention_decode && op.kind != OpKind::attention_prefill) return std::nullopt;
  const double slots = op.attention.padded_tokens;
  return slots > 0 ? 1 - op.attention.context_tokens / slots : 0;
}

std::vector<PricedOp> priced_ops(const StepPlan& plan, const sim::StepPrice& price, const sim::Machine& machine) {
  const bool several = std::ranges::any_of(plan.ops, [](const Op& op) { return op.layer_kind > 0; });
  std::vector<PricedOp> ops;
  for (std::size_t index = 0; index < plan.ops.size(); ++index) {
    const Op& op = plan.ops[index];
    const lower::Launch launch = lower::lower(op, plan, machine, machine.stack.kernels);
    const FlopsPerSecond peak = sim::peak_of(machine, launch.arithmetic);
    ops.push_back({op, price.ops[index], machine, peak, several && op.stage == Stage::layer});
  }
  return ops;
}

}  // namespace dculab::present
