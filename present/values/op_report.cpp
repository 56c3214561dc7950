#include "present/values/op_report.hpp"

#include <algorithm>

namespace dculab::present {

std::string op_label(const Op& op, const ModelShape& model) {
  const std::string kind = op.stage == Stage::layer ? kind_label(model, op.layer_kind) : "";
  return std::string(op.name) + (kind.empty() ? "" : ", " + kind);
}

Json ops_json(const StepPlan& plan, const sim::StepPrice& price, const sim::Machine& machine) {
  Json ops = Json::array();
  const bool several = std::ranges::any_of(plan.ops, [](const Op& op) { return op.layer_kind > 0; });
  for (std::size_t index = 0; index < plan.ops.size(); ++index) {
    const Op& op = plan.ops[index];
    const sim::OpPrice& each = price.ops[index];
    Json entry{{"op", op.name},
               {"count", op.count},
               {"seconds", each.all_executions().value()},
               {"bound", sim::name(each.bound, machine)},
               {"flops", (op.flops * op.count).value()},
               {"bytes", Json::object()},
               {"hit_rate", Json::object()},
               {"effective_latency_seconds", each.effective_latency.value()}};
    if (several && op.stage == Stage::layer) entry["layer_kind"] = op.layer_kind;
    for (std::size_t level = 0; level < machine.memory.size(); ++level) {
      entry["bytes"][machine.memory[level].name] = (each.bytes[level] * op.count).value();
      entry["hit_rate"][machine.memory[level].name] = each.hit_rate[level];
    }
    ops.push_back(std::move(entry));
  }
  return ops;
}

}  // namespace dculab::present
