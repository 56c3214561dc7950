// What devices that share a model exchange: times by hand, and the collectives of a step.
#include "core/shard.hpp"
#include "sim/cost/exchange_time.hpp"
#include "sim/cost/step_price.hpp"
#include "sim/hardware/device_link.hpp"
#include "tests/sim/machines.hpp"
#include "tests/sim/models.hpp"
#include "tests/support/catch.hpp"

using namespace dculab;
using namespace dculab::sim;

namespace {

// Of `bytes` that every device has in the end.
Seconds time_of(const Machine& machine, OpKind kind, int devices, Bytes bytes) {
  Op op;
  op.kind = kind;
  op.devices = devices;
  op.add({OperandRole::output, bytes, bytes});
  return price_op(machine, {}, op, Bytes()).seconds;
}

Seconds all_reduce_time(const Machine& machine, int devices, Bytes bytes) {
  return time_of(machine, OpKind::all_reduce, devices, bytes);
}

Seconds gather_time(const Machine& machine, int devices, Bytes bytes) {
  return time_of(machine, OpKind::all_gather, devices, bytes);
}

Machine nvlinked() {
  Machine machine = test::a100_like();
  machine.peer_link = BytesPerSecond(300e9);
  machine.peers = 7;
  machine.peer_latency = Seconds(0.47e-6);
  return machine;
}

}  // namespace

TEST_CASE("an all-reduce costs hops when small and the link when large") {
  const Machine machine = nvlinked();
  CHECK(all_reduce_time(machine, 2, Bytes(0)).value() == Approx(3.6e-6 + 2 * 0.47e-6));
  CHECK(all_reduce_time(machine, 8, Bytes(0)).value() == Approx(3.6e-6 + 14 * 0.47e-6));
  CHECK(all_reduce_time(machine, 4, Bytes(3e9)).value() == Approx(1.5 * 3e9 / 300e9 + 8.4e-6 + 6 * 3.4e-6));
  CHECK(gather_time(machine, 4, Bytes(0)).value() == Approx(3.6e-6 + 3 * 0.47e-6));
  CHECK(gather_time(machine, 4, Bytes(3e9)).value() == Approx(0.75 * 3e9 / 300e9 + 8.4e-6 + 3 * 3.4e-6));
}

TEST_CASE("an all-reduce pays the machine's own hops, and two where every device is linked to every other") {
  Machine machine = test::mi50_like();
  machine.peer_link = BytesPerSecond(32e9);
  machine.peers = 7;
  machine.peer_latency = Seconds(2.2e-6);
  machine.collective_start = Seconds(12e-6);
  machine.network_link = BytesPerSecond(25e9);
  machine.network_latency = Seconds(9e-6);
  CHECK(all_reduce_time(machine, 8, Bytes(0)).value() == Approx(12e-6 + 14 * 2.2e-6));
  CHECK(all_reduce_time(machine, 16, Bytes(0)).value() == Approx(12e-6 + 30 * 9e-6));
  machine.direct_peers = 3;
  CHECK(all_reduce_time(machine, 8, Bytes(0)).value() == Approx(12e-6 + 14 * 2.2e-6));
  CHECK(all_reduce_time(machine, 4, Bytes(0)).value() == Approx(12e-6 + 2 * 2.2e-6));
  CHECK(gather_time(machine, 4, Bytes(0)).value() == Approx(12e-6 + 2.2e-6));
}

TEST_CASE("a shard's step exchanges two sums a layer, the embedding's and the logits of sampled rows") {
  const ModelShape model = test::llama_3_8b();
  const Machine machine = nvlinked();
  const StepPlan plan = plan_step(shard(model, 2), {}, uniform_batch(Phase::prefill, 3, 100));
  const StepPrice price = price_step(machine, plan);
  Seconds exchange;
  for (const OpPrice& op : price.ops)
    if (op.bound.kind == BoundKind::exchange) exchange += op.all_executions();
  CHECK(exchange.value() == Approx(65 * all_reduce_time(machine, 2, Bytes(300 * 4096 * 2.0)).value() +
                                   gather_time(machine, 2, Bytes(3 * 128256 * 2.0)).value()));
  const StepPlan whole = plan_step(model, {}, uniform_batch(Phase::prefill, 3, 100));
  CHECK(plan.ops.size() == whole.ops.size() + 4);
}

TEST_CASE("devices share a model that divides, over a link") {
  const ModelShape model = test::llama_3_8b();
  CHECK(sharing_problems(test::a100_like(), model, 1).empty());
  CHECK(sharing_problems(test::a100_like(), model, 3).size() == 4);  // no link, 32 / 3, 8 / 3, 14336 / 3
  CHECK(sharing_problems(nvlinked(), model, 8).empty());
}
