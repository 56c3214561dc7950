#include "sim/cost/step_price.hpp"

#include <algorithm>
#include <map>
#include <span>

#include "core/cancellation.hpp"
#include "lower/lower.hpp"
#include "sim/compute/split_k.hpp"
#include "sim/cost/alike_ops.hpp"
#include "sim/cost/exchange_time.hpp"
#include "sim/cost/smooth_max.hpp"
#include "sim/cost/split_price.hpp"
#include "sim/cost/way_price.hpp"
#include "sim/hardware/process_share.hpp"
#include "sim/memory/cache_pollution.hpp"

namespace dculab::sim {
namespace {

using lower::Launch;

[[nodiscard]] OpPrice price_exchange(const Machine& machine, const Op& op, const Launch& launch) {
  const bool moves_tokens = launch.transfer.devices > 1;
  const ExchangeTime time =
      moves_tokens ? exchange_time(machine, launch.transfer) : exchange_time(machine, launch.exchanges);
  OpPrice price;
  if (moves_tokens) price.taken_units = launch.transfer.units / machine.compute_units;
  price.count = op.count;
  price.seconds = time.seconds;
  price.floor = time.floor;
  price.bound = {BoundKind::exchange, 0};
  price.kernels = time.kernels;
  return price;
}

// What all ops of a step have in common.
struct InStep {
  double matmul_norm, other_norm;  // of the smooth maximum
  double launches_per_kernel;
  AlikeOps alike;

  InStep(const Reached& reached, double launches, std::span<const Op> ops)
      : matmul_norm(norm_of_overlap(reached.matmul_overlap)),
        other_norm(norm_of_overlap(reached.overlap)),
        launches_per_kernel(launches),
        alike(ops) {}

  [[nodiscard]] double norm_of(OpKind kind) const { return kind == OpKind::matmul ? matmul_norm : other_norm; }
};

// The cheapest way: of splits on a GPU, and on a CPU of all threads and the calling one.
[[nodiscard]] OpPrice price_op(const Machine& machine, const StepPlan& plan, const Op& op, Bytes footprint,
                               const InStep& step) {
  const Launch launch = lower::lower(op, plan, machine, machine.stack.kernels);
  if (launch.exchanges.count > 0 || launch.transfer.devices > 1) return price_exchange(machine, op, launch);
  const Lowered lowered{machine, op, launch, footprint, step.norm_of(op.kind), step.launches_per_kernel};
  const Parallelism whole = parallelism(machine, launch);
  if (launch.parts > 1) return price_way(lowered, {split_along_k(machine, whole, launch.parts), launch.parts});
  if (launch.parts == 0 && can_be_split(machine, launch, whole)) return price_cheapest_split(lowered, whole);
  if (!launch.may_run_inline) return price_way(lowered, {whole});
  const OpPrice all = price_way(lowered, {whole});
  if (all.launch <= Seconds{}) return all;
  const OpPrice alone = price_way(lowered, {parallelism(machine, launch, Team::caller)});
  return alone.seconds < all.seconds ? alone : all;
}

// What is alike in layers of several kinds, which share one block table, is priced once.
[[nodiscard]] OpPrice price_next(const Machine& machine, const StepPlan& plan, Bytes footprint, const InStep& step,
                                 std::size_t index) {
  const Op& op = plan.ops[index];
  const int executions = step.alike.executions(index);
  if (executions == op.count) return price_op(machine, plan, op, footprint, step);
  Op all = op;
  all.count = executions;
  return price_op(machine, plan, all, footprint, step);
}

void add_refill(const Machine& machine, const Op& op, double cold_share, Bytes footprint, OpPrice& price) {
  const BytesPerSecond bandwidth = machine.sustained.cold_miss_bandwidth * machine.dram().bandwidth;
  price.cold_misses = cold_share * kept_bytes(machine, op, footprint) / bandwidth;
  price.seconds += price.cold_misses;
}

[[nodiscard]] bool is_replayed(const Graphs& graphs, const Batch& batch) {
  const auto prefills = [](const SequenceSlice& slice) { return slice.phase == Phase::prefill; };
  if (std::ranges::any_of(batch.sequences, prefills)) return batch.num_tokens() <= graphs.prefill_tokens;
  return batch.num_tokens() <= graphs.decode_sequences;  // a token each, or drafts with it
}

// Of a host that copies the block tables of the step's sequences, entry by entry. Kinds of layers share the tables: of
// those with and without a window the longest counts.
[[nodiscard]] Seconds copying_tables(const Stack& stack, const StepPlan& plan) {
  double prefill = 0, decode = 0;
  for (const Op& op : plan.ops) {
    if (op.kind == OpKind::attention_prefill) prefill = std::max(prefill, op.attention.kv_blocks);
    if (op.kind == OpKind::attention_decode) decode = std::max(decode, op.attention.kv_blocks);
  }
  return (prefill + decode) * stack.host_per_block;
}

[[nodiscard]] Seconds filtering(const Stack& stack, const StepPlan& plan) {
  if (plan.filtered_logits == 0) return {};
  return stack.sampler_per_step + static_cast<double>(plan.filtered_logits) * stack.sampler_per_logit;
}

// What the device waits for a host that launches the step's kernels one by one.
[[nodiscard]] Seconds waiting_for_launches(const Stack& stack, const Batch& batch, const StepPrice& price,
                                           Seconds device) {
  if (stack.host_per_kernel <= Seconds{} || is_replayed(stack.graphs, batch)) return {};
  double kernels = 0;
  for (const OpPrice& op : price.ops) kernels += op.count * op.kernels;
  return std::max(Seconds{}, kernels * stack.host_per_kernel - device);
}

void price_on_device(const Machine& machine, const StepPlan& plan, double cold_share, StepPrice& price, Bytes beside) {
  const Bytes footprint = step_footprint(plan) + beside;
  const InStep step(machine.stack.reached, machine.stack.launches_per_kernel(), plan.ops);
  const auto sequences = static_cast<double>(plan.batch.sequences.size());
  price.host = machine.stack.host_per_step.value_or(machine.overheads.host_per_step) +
               sequences * machine.stack.host_per_sequence.value_or(machine.overheads.host_per_sequence);
  if (machine.stack.host_per_block > Seconds{}) price.host += copying_tables(machine.stack, plan);
  price.seconds = price.host;
  price.ops.clear();
  for (std::size_t index = 0; index < plan.ops.size(); ++index) {
    if (const auto first = step.alike.first(index))
      price.ops.push_back(price.ops[*first]);
    else
      price.ops.push_back(price_next(machine, plan, footprint, step, index));
    price.ops.back().count = plan.ops[index].count;
  }
  for (std::size_t index = 0; index < plan.ops.size(); ++index) {
    if (cold_share > 0) add_refill(machine, plan.ops[index], cold_share, footprint, price.ops[index]);
    price.seconds += price.ops[index].all_executions();
  }
  const Seconds waiting = waiting_for_launches(machine.stack, plan.batch, price, price.seconds - price.host);
  price.host += waiting;
  price.sampling = filtering(machine.stack, plan);
  price.seconds += waiting + price.sampling;
}

}  // namespace

std::string_view name(Bound bound, const Machine& machine) {
  switch (bound.kind) {
    case BoundKind::compute:
      return "compute";
    case BoundKind::memory:
      return machine.memory[bound.level].name;
    case BoundKind::latency:
      return "latency";
    case BoundKind::launch:
      return "launch";
    case BoundKind::exchange:
      return "exchange";
  }
  return "?";
}

std::string step_bound(const StepPrice& price, const Machine& machine) {
  std::map<std::string_view, Seconds> seconds;
  for (const OpPrice& op : price.ops) seconds[name(op.bound, machine)] += op.all_executions();
  return std::string(std::ranges::max_element(seconds, {}, [](const auto& share) { return share.second; })->first);
}

Seconds exchange_time(const StepPrice& price) {
  Seconds total;
  for (const OpPrice& op : price.ops)
    if (op.bound.kind == BoundKind::exchange) total += op.all_executions();
  return total;
}

Bytes step_footprint(const StepPlan& plan) {
  Bytes total;
  for (const Op& op : plan.ops) {
    if (op.kind == OpKind::attention_scores) continue;  // reads what attention has read
    for (const Operand& operand : op.operands())
      if (operand.role == OperandRole::weight || operand.role == OperandRole::kv_read)
        total += op.count * operand.unique;
  }
  return total;
}

OpPrice price_op(const Machine& machine, const StepPlan& plan, const Op& op, Bytes footprint) {
  return price_op(machine, plan, op, footprint, InStep(machine.stack.reached, 1, {}));
}

void price_step(const Machine& machine, const StepPlan& plan, double cold_share, StepPrice& price, Bytes beside) {
  stop_if_cancelled();
  const int processes = processes_of(machine, plan);
  if (processes == 1) return price_on_device(machine, plan, cold_share, price, beside);
  price_on_device(process_share(machine, processes), plan, cold_share, price, beside);
}

void price_step(const Machine& machine, const StepPlan& plan, StepPrice& price) {
  price_step(machine, plan, plan.batch.cold_share, price);
}

StepPrice price_step(const Machine& machine, const StepPlan& plan) {
  StepPrice price;
  price_step(machine, plan, price);
  return price;
}

}  // namespace dculab::sim
