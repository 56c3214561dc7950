#include "sim/cost/step_price.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "lower/lower.hpp"
#include "sim/compute/compute_time.hpp"
#include "sim/compute/matmul_rate.hpp"
#include "sim/compute/split_k.hpp"
#include "sim/cost/exchange_time.hpp"
#include "sim/cost/smooth_max.hpp"
#include "sim/memory/bandwidth.hpp"
#include "sim/memory/driven_out.hpp"
#include "sim/memory/level_bytes.hpp"

namespace dculab::sim {
namespace {

using lower::Launch;
using lower::Overlap;

// Fills in bytes, hit rates, bandwidths, T_eff and floor; returns each level's time.
[[nodiscard]] PerLevel<Seconds> price_memory(OpPrice& price, const Machine& machine, const Op& op, const Launch& launch,
                                             Bytes footprint) {
  const LevelBytes bytes = level_bytes(machine, op, launch, price.parallel, footprint, CacheStart::in_step);
  const PerLevel<Seconds> latencies = mean_latencies(machine, bytes.arriving);
  const Bytes in_flight = bytes_in_flight(machine, launch, price.parallel);
  const std::size_t levels = machine.memory.size();
  PerLevel<Seconds> times{};
  price.bytes = bytes.arriving;
  price.effective_latency = latencies[0];
  price.latency = bytes.read * latencies[0] / in_flight;
  for (std::size_t level = 0; level < levels; ++level) {
    const Bytes here = bytes.arriving[level];
    const bool last = level + 1 == levels;
    price.hit_rate[level] = last || here <= Bytes{} ? 1 : std::max(0.0, 1 - bytes.arriving[level + 1] / here);
    const double active = price.parallel.active_units;
    const BytesPerSecond deliverable_here =
        deliverable(machine, level, active, drawing_units(machine, launch, level, active));
    price.bandwidth[level] = std::min(deliverable_here, in_flight / latencies[level]);
    times[level] = here / deliverable_here;
    price.floor = std::max(price.floor, here / machine.memory[level].bandwidth);
  }
  return times;
}

// A second kernel adds up what the parts of a product split along k come to.
void price_starts(OpPrice& price, const Machine& machine, const Launch& launch, double parts) {
  price.lookups = launch.block_lookups * machine.stack.reached.block_lookup / price.parallel.concurrent;
  price.chain =
      launch.chained_loads * machine.memory[machine.memory.size() > 1 ? machine.memory.size() - 2 : 0].latency;
  const int launches = price.parallel.team == Team::caller ? 0 : launch.kernels + (parts > 1 ? 1 : 0);
  const double starts = price.parallel.team == Team::caller ? 0 : price.parallel.rounds;
  price.kernels = launches * machine.stack.kernels_per_op;
  price.launch = price.kernels * machine.overheads.kernel_launch + starts * machine.overheads.workgroup_start;
}

[[nodiscard]] Bound bound_of(const OpPrice& price, const Machine& machine, const PerLevel<Seconds>& levels) {
  const auto slowest = static_cast<std::size_t>(std::max_element(levels.begin(), levels.end()) - levels.begin());
  Bound bound{BoundKind::memory, slowest};
  Seconds largest = levels[slowest];
  const auto consider = [&](BoundKind kind, Seconds time) {
    if (time <= largest) return;
    largest = time;
    bound = {kind, 0};
  };
  if (price.adding > largest) {
    largest = price.adding;
    bound.level = std::max<std::size_t>(machine.memory.size(), 2) - 2;  // the last cache
  }
  consider(BoundKind::compute, price.compute);
  consider(BoundKind::latency, std::max({price.latency, price.lookups, price.chain}));
  consider(BoundKind::launch, price.launch);
  return bound;
}

[[nodiscard]] std::size_t hidden_levels(const Machine& machine, Overlap overlap) {
  if (overlap == Overlap::caches) return machine.memory.size() - 1;
  return overlap == Overlap::all ? machine.memory.size() : 0;
}

[[nodiscard]] Bytes weight_bytes(const Op& op) {
  Bytes total;
  for (const Operand& operand : op.operands())
    if (operand.role == OperandRole::weight) total += operand.unique;
  return total;
}

// Weights from DRAM at the rate at which the kernel gets through them there.
[[nodiscard]] Seconds streaming_weights(const OpPrice& price, const Machine& machine, const Launch& launch,
                                        Bytes weights, double share) {
  const std::size_t dram = machine.memory.size() - 1;
  const double units = price.parallel.active_units;
  const double active = deliverable(machine, dram, units, drawing_units(machine, launch, dram, units)) /
                        deliverable(machine, dram, machine.compute_units);
  return weights / (share * active * machine.dram().bandwidth);
}

// What keeps the op busy at once: each level, then arithmetic, then latency. A matmul that was measured with weights
// from DRAM takes that time in place of DRAM's and arithmetic's, since both are in it and overlap as they do. What
// arrives beyond the weights, which are the longest unused, are activations: DRAM serves those as any other op's.
[[nodiscard]] std::array<Seconds, kMaxMemoryLevels + 2> resources_of(const OpPrice& price, const Machine& machine,
                                                                     const Op& op, const Launch& launch,
                                                                     const PerLevel<Seconds>& levels) {
  std::array<Seconds, kMaxMemoryLevels + 2> resources{};
  std::copy(levels.begin(), levels.end(), resources.begin());
  Seconds& compute = resources[kMaxMemoryLevels];
  compute = price.compute;
  resources[kMaxMemoryLevels + 1] = price.latency;
  for (std::size_t level = 0; level < hidden_levels(machine, launch.overlap); ++level)
    compute = std::max(compute, std::exchange(resources[level], Seconds{}));
  if (const auto share = launch.product ? matmul_dram_share(machine, *launch.product) : std::nullopt) {
    const std::size_t dram = machine.memory.size() - 1;
    const Bytes arriving = price.bytes[dram], weights = std::min(arriving, weight_bytes(op));
    compute = std::max(compute, streaming_weights(price, machine, launch, weights, *share));
    if (arriving > weights)
      resources[dram] *= (arriving - weights) / arriving;
    else
      resources[dram] = Seconds{};
  }
  return resources;
}

// One way to run the launch: how far it is split along k, and who works on it.
struct Way {
  Parallelism parallel;
  double parts = 1;
};

[[nodiscard]] OpPrice price_with(const Way& way, const Machine& machine, const Op& op, const Launch& launch,
                                 Bytes footprint, double norm) {
  OpPrice price;
  price.count = op.count;
  price.parallel = way.parallel;
  const ComputeTime compute = compute_time(machine, op, launch, price.parallel);
  price.compute = compute.busy;
  price.floor = compute.floor;
  const PerLevel<Seconds> levels = price_memory(price, machine, op, launch, footprint);
  price.memory = *std::max_element(levels.begin(), levels.end());
  price_starts(price, machine, launch, way.parts);
  price.adding = adding_time(machine, launch, way.parts);
  auto resources = resources_of(price, machine, op, launch, levels);
  if (launch.overlap == Overlap::dram_in_turn) price.in_turn = std::exchange(resources[machine.memory.size() - 1], {});
  price.seconds =
      price.launch + price.lookups + price.chain + price.adding + price.in_turn + smooth_max(resources, norm);
  price.bound = bound_of(price, machine, levels);
  return price;
}

[[nodiscard]] OpPrice price_exchange(const Machine& machine, const Op& op, const Launch& launch) {
  const ExchangeTime time = exchange_time(machine, launch.exchanges);
  OpPrice price;
  price.count = op.count;
  price.seconds = time.seconds;
  price.floor = time.floor;
  price.bound = {BoundKind::exchange, 0};
  price.kernels = time.kernels;
  return price;
}

// The cheapest way: of splits on a GPU, and on a CPU of all threads and the calling one.
[[nodiscard]] OpPrice price_op(const Machine& machine, const StepPlan& plan, const Op& op, Bytes footprint,
                               double norm) {
  const Launch launch = lower::lower(op, plan, machine, machine.stack.kernels);
  if (launch.exchanges.count > 0) return price_exchange(machine, op, launch);
  const Parallelism whole = parallelism(machine, launch);
  if (launch.parts > 1)
    return price_with({split_along_k(machine, whole, launch.parts), launch.parts}, machine, op, launch, footprint,
                      norm);
  OpPrice best = price_with({whole}, machine, op, launch, footprint, norm);
  const auto consider = [&](const Way& other) {
    const OpPrice price = price_with(other, machine, op, launch, footprint, norm);
    if (price.seconds < best.seconds) best = price;
  };
  if (launch.parts == 0)
    for_each_split(machine, launch, whole, [&](double parts, const Parallelism& split) {
      if (adding_time(machine, launch, parts) < best.seconds) consider({split, parts});
    });
  if (launch.may_run_inline && best.launch > Seconds{}) consider({parallelism(machine, launch, Team::caller)});
  return best;
}

void add_refill(const Machine& machine, const Op& op, double cold_share, Bytes footprint, OpPrice& price) {
  const BytesPerSecond bandwidth = machine.sustained.refill_bandwidth * machine.dram().bandwidth;
  price.refill = cold_share * kept_bytes(machine, op, footprint) / bandwidth;
  price.seconds += price.refill;
}

[[nodiscard]] bool is_replayed(const Graphs& graphs, const Batch& batch) {
  const auto prefills = [](const SequenceSlice& slice) { return slice.phase == Phase::prefill; };
  if (std::ranges::any_of(batch.sequences, prefills)) return batch.num_tokens() <= graphs.prefill_tokens;
  return std::ssize(batch.sequences) <= graphs.decode_sequences;
}

// What the device waits for a host that launches the step's kernels one by one.
[[nodiscard]] Seconds waiting_for_launches(const Stack& stack, const Batch& batch, const StepPrice& price,
                                           Seconds device) {
  if (stack.host_per_kernel <= Seconds{} || is_replayed(stack.graphs, batch)) return {};
  double kernels = 0;
  for (const OpPrice& op : price.ops) kernels += op.count * op.kernels;
  return std::max(Seconds{}, kernels * stack.host_per_kernel - device);
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
  return price_op(machine, plan, op, footprint, norm_of_overlap(machine.stack.reached.overlap));
}

void price_step(const Machine& machine, const StepPlan& plan, double cold_share, StepPrice& price) {
  const Bytes footprint = step_footprint(plan);
  const double norm = norm_of_overlap(machine.stack.reached.overlap);
  const auto sequences = static_cast<double>(plan.batch.sequences.size());
  price.host = machine.stack.host_per_step.value_or(machine.overheads.host_per_step) +
               sequences * machine.stack.host_per_sequence.value_or(machine.overheads.host_per_sequence);
  price.seconds = price.host;
  price.ops.clear();
  for (const Op& op : plan.ops) {
    OpPrice& priced = price.ops.emplace_back(price_op(machine, plan, op, footprint, norm));
    if (cold_share > 0) add_refill(machine, op, cold_share, footprint, priced);
    price.seconds += priced.all_executions();
  }
  const Seconds waiting = waiting_for_launches(machine.stack, plan.batch, price, price.seconds - price.host);
  price.host += waiting;
  price.seconds += waiting;
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
