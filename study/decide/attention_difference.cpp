#include "study/decide/attention_difference.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace dculab::study {
namespace {

[[nodiscard]] bool is_attention(const Op& op) {
  return op.kind == OpKind::attention_decode || op.kind == OpKind::attention_prefill;
}

// That finds out what attention is to load.
[[nodiscard]] bool is_choice(const Op& op) { return op.kind == OpKind::choose_critical_blocks; }

[[nodiscard]] double bytes_of(const Op& op, OperandRole role) {
  double bytes = 0;
  for (const Operand& operand : op.operands())
    if (operand.role == role) bytes += operand.unique.value();
  return bytes;
}

// What `to` takes most of beyond what `from` takes: "KV traffic".
[[nodiscard]] std::string largest_cause(const AttentionCauses& from, const AttentionCauses& to) {
  const std::vector<std::pair<std::string, double>> differences{
      {"KV traffic", to.memory - from.memory},
      {"latency with too few bytes in flight", to.latency - from.latency},
      {"block-table look-ups", to.lookups - from.lookups},
      {"workgroup starts", to.launch - from.launch},
      {"arithmetic", to.compute - from.compute}};
  return std::ranges::max_element(differences, {}, &std::pair<std::string, double>::second)->first;
}

}  // namespace

void add_to(AttentionCauses& causes, const StepPlan& plan, const sim::StepPrice& step, double weight) {
  causes.step += weight * step.seconds.value();
  double layers = 0;
  for (const Op& op : plan.ops)
    if (op.kind == OpKind::rope_and_cache) layers += op.count;
  for (std::size_t index = 0; index < plan.ops.size(); ++index) {
    const Op& op = plan.ops[index];
    if (!is_attention(op) && !is_choice(op)) continue;
    const sim::OpPrice& price = step.ops[index];
    const double times = weight * op.count;
    causes.attention += times * price.seconds.value();
    causes.memory += times * price.memory.value();
    causes.latency += times * price.latency.value();
    causes.lookups += times * price.lookups.value();
    causes.launch += times * price.launch.value();
    causes.compute += times * price.compute.value();
    causes.kv_bytes += times * bytes_of(op, OperandRole::kv_read);
    if (is_attention(op))
      causes.wasted += times / layers * (1 - op.attention.context_tokens / op.attention.padded_tokens);
  }
}

std::string attention_difference(const AttentionCauses& from, const AttentionCauses& to) {
  constexpr double kNothing = 1e-3;  // of the step
  if (std::abs(to.attention - from.attention) < kNothing * from.step) return "";
  return to.attention > from.attention ? "more " + largest_cause(from, to) : "less " + largest_cause(to, from);
}

std::string attention_difference(const sim::DecodeStep& from, const sim::DecodeStep& to) {
  AttentionCauses before, after;
  add_to(before, from.plan, from.price, 1);
  add_to(after, to.plan, to.price, 1);
  return attention_difference(before, after);
}

std::string heads_text(int kv_heads) { return std::to_string(kv_heads) + (kv_heads == 1 ? " KV head" : " KV heads"); }

}  // namespace dculab::study
