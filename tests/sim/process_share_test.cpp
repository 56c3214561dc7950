// What processes on one CPU have of it, and what their steps and exchanges are priced at.
#include "sim/hardware/process_share.hpp"
#include "lower/shared_memory/geometry.hpp"
#include "model/expert_shard.hpp"
#include "model/plan_step.hpp"
#include "model/shard.hpp"
#include "sim/cost/step_price.hpp"
#include "sim/hardware/deployment.hpp"
#include "sim/memory/capacity.hpp"
#include "tests/sim/machines.hpp"
#include "tests/sim/models.hpp"
#include "tests/support/catch.hpp"

using namespace dculab;
using namespace dculab::sim;

namespace {

Machine linked_cpu() {
  Machine machine = sim::test::cpu_like();
  machine.compute_units = 4;
  machine.peer_link = BytesPerSecond(10e9);
  machine.sustained.peer_link = 0.5;
  machine.peers = 3;
  machine.peer_latency = Seconds(1e-6);
  machine.collective_start = Seconds(2e-6);
  return machine;
}

Op group_exchange(OpKind kind, int devices, Bytes result) {
  Op op;
  op.kind = kind;
  op.devices = devices;
  op.add({OperandRole::output, result, result});
  return op;
}

Seconds group_time(const Op& op) { return price_op(linked_cpu(), {}, op, Bytes()).seconds; }

}  // namespace

TEST_CASE("a process has its share of threads, peaks, shared caches and DRAM; a core's caches are its own") {
  const Machine whole = linked_cpu();
  const Machine half = process_share(whole, 2);
  CHECK(half.compute_units == 2);
  for (const auto& [dtype, peak] : whole.peaks) CHECK(half.peaks.at(dtype).vector == 0.5 * peak.vector);
  for (std::size_t level = 0; level < whole.memory.size(); ++level) {
    const bool is_own = whole.memory[level].scope == Scope::compute_unit;
    CHECK(half.memory[level].size == (is_own ? 1.0 : 0.5) * whole.memory[level].size);
    CHECK(half.memory[level].bandwidth == 0.5 * whole.memory[level].bandwidth);
    CHECK(half.memory[level].latency == whole.memory[level].latency);
  }
  CHECK(half.overheads.kernel_launch == whole.overheads.kernel_launch);
  CHECK(process_share(whole, 4).overheads.kernel_launch == Seconds());  // of one thread
  CHECK(process_share(whole, 1).compute_units == 4);
  CHECK(process_share(whole, 3).compute_units == 1);  // whole threads
  CHECK(process_share(whole, 8).compute_units == 1);
  CHECK(process_share(whole, 8).peaks.begin()->second.vector == 0.125 * whole.peaks.begin()->second.vector);
}

TEST_CASE("an exchange through shared memory is a start, a meeting for each piece, and the slots that are read") {
  const double rate = 0.5 * 10e9, slot = static_cast<double>(lower::shared_memory::kSlotBytes);
  CHECK(group_time(group_exchange(OpKind::all_reduce, 2, Bytes(1024))).value() == Approx(3e-6 + 2 * 1024 / rate));
  CHECK(group_time(group_exchange(OpKind::all_reduce, 4, Bytes(slot))).value() == Approx(3e-6 + 4 * slot / rate));
  CHECK(group_time(group_exchange(OpKind::all_reduce, 2, Bytes(slot + 1))).value() ==
        Approx(4e-6 + 2 * (slot + 1) / rate));
  CHECK(group_time(group_exchange(OpKind::all_gather, 2, Bytes(2 * slot))).value() == Approx(3e-6 + 2 * slot / rate));
}

TEST_CASE("a step of two processes is predicted on half the machine, with half the work and the exchanges besides") {
  const Machine machine = linked_cpu();
  const ModelShape model = sim::test::tiny_llama();
  EngineOptions options;
  options.activation_dtype = Dtype::f32;
  const Batch batch = uniform_batch(Phase::decode, 4, 100);
  const ModelShape part = shard(model, {}, 2);
  const StepPlan plan = plan_step(part, options, batch);
  CHECK(processes_of(machine, plan) == 2);
  CHECK(processes_of(machine, part) == 2);
  CHECK(processes_of(sim::test::a100_like(), plan) == 1);
  const StepPrice price = price_step(machine, plan);
  StepPrice by_hand = price_step(process_share(machine, 2), plan_step(model, options, batch));
  CHECK(price.seconds - exchange_time(price) < by_hand.seconds);  // half the work on half the machine
  CHECK(exchange_time(price) > Seconds());
  for (std::size_t op = 0; op < plan.ops.size(); ++op)
    CHECK((price.ops[op].bound.kind == BoundKind::exchange) == (plan.ops[op].devices > 1));
}

TEST_CASE("memory is shared out as well") {
  const Machine machine = linked_cpu();
  const ModelShape model = sim::test::tiny_llama();
  EngineOptions options;
  options.activation_dtype = Dtype::f32;
  const Bytes whole = capacity(machine, model, options, 100).kv_budget;
  CHECK(capacity(machine, shard(model, {}, 2), options, 100).kv_budget < 0.6 * whole);
}

TEST_CASE("experts are divided among processes of a CPU, and their rows are sent in F32") {
  const Machine machine = linked_cpu();
  ModelShape model = sim::test::tiny_llama();
  for (LayerKind& kind : model.kinds)
    kind.experts = Experts{.num_experts = 8, .num_experts_per_tok = 2, .intermediate_size = 64};
  EngineOptions options;
  options.activation_dtype = Dtype::f32;
  const ReplicaDevices devices{.tensor_parallel_size = 2, .experts = {.size = 2}};
  CHECK(problems(devices, machine, model, options).empty());
  Machine unlinked = machine;
  unlinked.peer_link.reset();
  CHECK_FALSE(problems(devices, unlinked, model, options).empty());
  const ModelShape part = part_of_layers(devices, machine, model, options);
  const StepPlan plan = plan_step(part, options, uniform_batch(Phase::decode, 8, 50));
  int exchanges = 0;
  for (const Op& op : plan.ops)
    if (op.kind == OpKind::dispatch_tokens || op.kind == OpKind::return_tokens) {
      ++exchanges;
      CHECK(op.activation_dtype == Dtype::f32);
      CHECK(price_op(machine, plan, op, Bytes()).seconds > Seconds());
    }
  CHECK(exchanges == 2);
}
