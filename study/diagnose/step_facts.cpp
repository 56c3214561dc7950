#include "study/diagnose/step_facts.hpp"

#include <algorithm>

#include "core/letter_case.hpp"
#include "sim/calibration/floor_check.hpp"
#include "sim/cost/step_price.hpp"

namespace dculab::study {
namespace {

[[nodiscard]] Bytes operand_bytes(const Op& op, OperandRole role) {
  Bytes total;
  for (const Operand& operand : op.operands())
    if (operand.role == role) total += operand.unique;
  return total;
}

[[nodiscard]] bool is_between_devices(OpKind kind) {
  return kind == OpKind::all_reduce || kind == OpKind::all_gather || kind == OpKind::dispatch_tokens ||
         kind == OpKind::return_tokens;
}

void add_to(OpTotals& totals, const Op& op, Seconds time, OperandRole role) {
  totals.time += time;
  totals.bytes += op.count * operand_bytes(op, role);
  if (op.kind == OpKind::matmul)
    totals.values += static_cast<double>(op.count) * static_cast<double>(op.n) * static_cast<double>(op.k) *
                     std::max(1.0, op.groups.touched);
}

void add_op(StepFacts& facts, const Op& op, const sim::OpPrice& price) {
  const Seconds time = op.count * price.seconds;
  facts.launches += op.count * price.kernels;
  if (op.kind == OpKind::attention_decode || op.kind == OpKind::attention_prefill) {
    add_to(facts.attention, op, time, OperandRole::kv_read);
  } else if (op.kind == OpKind::matmul) {
    const bool is_routed = op.weight == WeightSlot::expert_up_proj || op.weight == WeightSlot::expert_down_proj;
    OpTotals& totals = is_routed ? facts.experts : bits(op.weight_format.dtype) < 16 ? facts.quantized : facts.products;
    add_to(totals, op, time, OperandRole::weight);
  } else if (is_between_devices(op.kind)) {
    facts.exchange += time;
    facts.collectives += op.count;
    facts.collective_bytes += op.count * operand_bytes(op, OperandRole::output);
  } else {
    facts.others += time;
  }
}

// Kernels that a host launches one by one hold the device up (sim/cost/step_price.hpp).
[[nodiscard]] Seconds launching(const StepFacts& facts) {
  const sim::Stack& stack = facts.machine().stack;
  const Batch& batch = facts.prediction.plan.batch;
  const int replayed = facts.asked.phase == Phase::decode ? stack.graphs.decode_sequences : stack.graphs.prefill_tokens;
  return batch.num_tokens() <= replayed ? Seconds{} : facts.launches * stack.host_per_kernel;
}

[[nodiscard]] Prediction predicted_step(const DiagnosisQuestion& question, const char* phase, int batch, int context) {
  StepQuestion step = question.step;
  step.phase = phase;
  step.batch = batch;
  step.context = context;
  if (question.tensor_parallel_size > 0)
    step.set.push_back("deployment.tensor_parallel_size=" + std::to_string(question.tensor_parallel_size));
  return predict(step_scenario(step), InputSensitivities::left_out);
}

[[nodiscard]] Seconds time_of(const Prediction& prediction) {
  if (prediction.drafts) return prediction.drafts->times.verify + prediction.drafts->times.drafting;
  return prediction.price.seconds;
}

void add_other_steps(const DiagnosisQuestion& question, StepFacts& facts) {
  const MeasuredStep& asked = facts.asked;
  if (asked.phase == Phase::prefill) return;
  if (facts.may_lack_cache())
    facts.recomputed = predicted_step(question, "prefill", asked.batch, asked.context).price.seconds;
  if (asked.served) facts.prefill = predicted_step(question, "prefill", 1, asked.served->prompt_tokens).price.seconds;
  if (!asked.is_rate || asked.batch == 1) return;
  for (int batch = 1; batch < asked.batch; batch *= 2)
    facts.fewer.emplace_back(batch, time_of(predicted_step(question, "decode", batch, asked.context)));
  facts.fewer.emplace_back(asked.batch, facts.predicted);
}

}  // namespace

bool StepFacts::may_lack_cache() const { return lower_case(machine().stack.program) == "pytorch"; }

double StepFacts::prefill_share() const {
  return asked.served ? (asked.served->requests_per_second * prefill).value() : 0;
}

bool StepFacts::has_prefills() const {
  constexpr double kLeastShare = 0.05;
  const double share = prefill_share();
  if (asked.batch == 1 || share < kLeastShare) return false;
  return !asked.served->times_steps || 1 - asked.time / asked.served->tpot < share / 2;
}

StepFacts step_facts(const DiagnosisQuestion& question, const MeasuredStep& step) {
  StepFacts facts;
  facts.asked = step;
  facts.prediction =
      predicted_step(question, step.phase == Phase::decode ? "decode" : "prefill", step.batch, step.context);
  const Prediction& prediction = facts.prediction;
  if (prediction.drafts) facts.tokens = prediction.drafts->tokens;
  facts.measured = facts.tokens * step.time;
  facts.predicted = time_of(prediction);
  facts.floor = sim::step_floor(prediction.machine, prediction.plan);
  for (std::size_t index = 0; index < prediction.plan.ops.size(); ++index)
    add_op(facts, prediction.plan.ops[index], prediction.price.ops[index]);
  facts.device = facts.products.time + facts.quantized.time + facts.experts.time + facts.attention.time +
                 facts.exchange + facts.others;
  facts.device = std::max(facts.device, launching(facts));
  add_other_steps(question, facts);
  return facts;
}

StepFacts step_facts(const DiagnosisQuestion& question, int batch, int context) {
  return step_facts(question, MeasuredStep{.batch = batch, .context = context});
}

}  // namespace dculab::study
