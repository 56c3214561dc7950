// What devices that share a model exchange: times by hand, and the collectives of a step.
#include "lower/nccl/kernels.hpp"
#include "lower/peer_memory/kernels.hpp"
#include "model/plan_step.hpp"
#include "model/shard.hpp"
#include "sim/cost/step_price.hpp"
#include "sim/hardware/device_link.hpp"
#include "tests/sim/machines.hpp"
#include "tests/sim/models.hpp"
#include "tests/support/catch.hpp"

using namespace dculab;
using namespace dculab::sim;

namespace {

// Of `bytes` that every device has in the end.
Seconds exchange_time(const Machine& machine, OpKind kind, int devices, Bytes bytes) {
  Op op;
  op.kind = kind;
  op.devices = devices;
  op.add({OperandRole::output, bytes, bytes});
  return price_op(machine, {}, op, Bytes()).seconds;
}

Seconds all_reduce_time(const Machine& machine, int devices, Bytes bytes) {
  return exchange_time(machine, OpKind::all_reduce, devices, bytes);
}

Seconds gather_time(const Machine& machine, int devices, Bytes bytes) {
  return exchange_time(machine, OpKind::all_gather, devices, bytes);
}

Machine nvlinked() {
  Machine machine = sim::test::a100_like();
  machine.peer_link = BytesPerSecond(300e9);
  machine.peers = 7;
  machine.direct_peers = 7;
  machine.peer_latency = Seconds(1e-6);
  machine.collective_start = Seconds(5e-6);
  machine.sustained.peer_link = 0.7;
  return machine;
}

constexpr double kLinkRate = 0.7 * 300e9;

}  // namespace

TEST_CASE("an all-reduce by NCCL costs hops when small and the link when large") {
  const Machine machine = nvlinked();
  CHECK(all_reduce_time(machine, 2, Bytes(0)).value() == Approx(5e-6 + 2 * 1e-6));
  CHECK(all_reduce_time(machine, 8, Bytes(0)).value() == Approx(5e-6 + 14 * 1e-6));
  CHECK(all_reduce_time(machine, 4, Bytes(3e9)).value() == Approx(1.5 * 3e9 / kLinkRate + 19.2e-6 + 6 * 1e-6));
  CHECK(gather_time(machine, 4, Bytes(0)).value() == Approx(5e-6 + 3 * 1e-6));
  CHECK(gather_time(machine, 4, Bytes(3e9)).value() == Approx(0.75 * 3e9 / kLinkRate + 19.2e-6 + 3 * 1e-6));
}

TEST_CASE("Hopper's switch adds up large messages: each device sends them once and gets them once") {
  Machine machine = nvlinked();
  machine.compute_capability = "9.0";
  CHECK(all_reduce_time(machine, 8, Bytes(3e9)).value() == Approx(75e-6 + 1.125 * 3e9 / (0.93 * kLinkRate)));
  machine.direct_peers = {};  // no switch
  CHECK(all_reduce_time(machine, 8, Bytes(3e9)) > Seconds(1.75 * 3e9 / kLinkRate));
}

TEST_CASE("an all-reduce by RCCL pays the machine's own hops, and the network's beyond a server") {
  Machine machine = sim::test::mi50_like();
  machine.peer_link = BytesPerSecond(32e9);
  machine.peers = 7;
  machine.peer_latency = Seconds(2.2e-6);
  machine.collective_start = Seconds(12e-6);
  machine.network_link = BytesPerSecond(25e9);
  machine.network_latency = Seconds(9e-6);
  CHECK(all_reduce_time(machine, 8, Bytes(0)).value() == Approx(12e-6 + 14 * 2.2e-6));
  CHECK(all_reduce_time(machine, 16, Bytes(0)).value() == Approx(12e-6 + 30 * (2 * 9e-6 + 14 * 2.2e-6) / 16));
  machine.isa = "gfx942";
  machine.direct_peers = 7;
  CHECK(all_reduce_time(machine, 8, Bytes(0)).value() == Approx(12e-6 + 2 * 2.2e-6));
  CHECK(gather_time(machine, 8, Bytes(0)).value() == Approx(12e-6 + 2.2e-6));
}

TEST_CASE("of links to single peers, fewer devices use fewer") {
  Machine machine = sim::test::mi50_like();
  machine.peer_link = BytesPerSecond(448e9);
  machine.single_peer_link = BytesPerSecond(64e9);
  machine.peers = 7;
  CHECK(link_among(machine, 2)->peak == BytesPerSecond(64e9));
  CHECK(link_among(machine, 4)->peak == BytesPerSecond(192e9));
  CHECK(link_among(machine, 8)->peak == BytesPerSecond(448e9));
  CHECK(link_among(machine, 8)->bandwidth == machine.sustained.peer_link * BytesPerSecond(448e9));
}

TEST_CASE("vLLM's own all-reduce reads from all peers at once, larger ones in two stages") {
  Machine machine = nvlinked();
  machine.stack.kernels.all_reduce = {&lower::peer_memory::kVllmCustomAllReduce, &lower::nccl::kNccl};
  const double launch = machine.overheads.kernel_launch.value();
  CHECK(all_reduce_time(machine, 4, Bytes(0)).value() == Approx(launch + 4e-6));
  CHECK(all_reduce_time(machine, 2, 7 * kMiB).value() == Approx(launch + 4e-6 + (7 * kMiB).value() / kLinkRate));
  CHECK(all_reduce_time(machine, 4, kMiB).value() == Approx(launch + 10e-6 + 1.5 * kMiB.value() / kLinkRate));
  Machine library = machine;
  library.stack.kernels.all_reduce = {&lower::nccl::kNccl};
  for (const auto& [devices, bytes] : {std::pair{4, 8 * kMiB}, {3, kMiB}})  // which it does not serve
    CHECK(all_reduce_time(machine, devices, bytes) == all_reduce_time(library, devices, bytes));
}

TEST_CASE("a shard's step exchanges two sums a layer, the embedding's and the logits of sampled rows") {
  const ModelShape model = sim::test::llama_3_8b();
  const Machine machine = nvlinked();
  const StepPlan plan = plan_step(shard(model, {}, 2), {}, uniform_batch(Phase::prefill, 3, 100));
  const StepPrice price = price_step(machine, plan);
  CHECK(exchange_time(price).value() == Approx(65 * all_reduce_time(machine, 2, Bytes(300 * 4096 * 2.0)).value() +
                                               gather_time(machine, 2, Bytes(3 * 128256 * 2.0)).value()));
  const StepPlan whole = plan_step(model, {}, uniform_batch(Phase::prefill, 3, 100));
  CHECK(plan.ops.size() == whole.ops.size() + 4);
}

TEST_CASE("devices share a model that divides, over a link") {
  const ModelShape model = sim::test::llama_3_8b();
  CHECK(sharing_problems(sim::test::a100_like(), model, {}, 1).empty());
  CHECK(sharing_problems(sim::test::a100_like(), model, {}, 3).size() == 4);  // no link, 32 / 3, 8 / 3, 14336 / 3
  CHECK(sharing_problems(nvlinked(), model, {}, 8).empty());
}
