// What other tenants drive out of a shared cache: how cold a step begins, and what that costs.
#include "sim/memory/cache_pollution.hpp"

#include <cmath>

#include "model/plan_step.hpp"
#include "sim/cost/step_price.hpp"
#include "sim/serving/simulated_executor.hpp"
#include "tests/sim/machines.hpp"
#include "tests/sim/models.hpp"
#include "tests/support/catch.hpp"

namespace dculab::sim::test {
namespace {

// Its last cache keeps a tiny model among other tenants, for 5 ms.
[[nodiscard]] Machine shared_cpu() {
  Machine machine = cpu_like();
  machine.memory[2].retention_time = Seconds(5e-3);
  return machine;
}

[[nodiscard]] StepPlan tiny_decode() {
  return plan_step(tiny_llama(), EngineOptions{}, uniform_batch(Phase::decode, 1, 100));
}

TEST_CASE("a cache of one's own is never cold") {
  CacheWarmth warmth(cpu_like());
  CHECK(warmth.cold_share(Seconds(0)) == 0);
  CHECK(warmth.cold_share(Seconds(100)) == 0);
}

TEST_CASE("cold after a pause, and warmer with every step") {
  CacheWarmth warmth(shared_cpu());
  CHECK(warmth.cold_share(Seconds(0)) == 0);
  CHECK(warmth.cold_share(Seconds(5e-3)) == Approx(1 - std::exp(-1.0)));
  CHECK(warmth.cold_share(Seconds(1)) == Approx(1));
  double now = 1, last = 1;
  for (int step = 1; step <= 4; ++step) {
    const double cold = warmth.cold_share(Seconds(now += 1e-6));
    CHECK(cold == Approx(kEvictedAgain * last).epsilon(1e-2));
    last = cold;
  }
}

TEST_CASE("a cold step fetches again what the shared cache kept, at the cold-miss bandwidth") {
  const Machine machine = shared_cpu();
  const StepPlan plan = tiny_decode();
  Bytes kept;
  for (const Op& op : plan.ops) kept += op.count * kept_bytes(machine, op, step_footprint(plan));
  CHECK(kept > Bytes{});
  CHECK(kept <= step_footprint(plan));
  const Seconds all = kept / (machine.sustained.cold_miss_bandwidth * machine.dram().bandwidth);
  const StepPrice warm = price_step(machine, plan);
  for (const double share : {0.25, 1.0}) {
    StepPlan cold = plan;
    cold.batch.cold_share = share;
    const StepPrice price = price_step(machine, cold);
    CHECK((price.seconds - warm.seconds) / all == Approx(share));
    Seconds of_ops = price.host;
    for (const OpPrice& op : price.ops) of_ops += op.all_executions();
    CHECK(of_ops / price.seconds == Approx(1));
  }
}

TEST_CASE("what no cache keeps is not fetched again") {
  Machine machine = shared_cpu();
  for (MemoryLevel& level : machine.memory)
    if (&level != &machine.dram()) level.size = kKiB;
  const StepPlan plan = tiny_decode();
  for (const Op& op : plan.ops) CHECK(kept_bytes(machine, op, step_footprint(plan)) < 1e-6 * step_footprint(plan));
}

TEST_CASE("what a unit's own cache keeps is not fetched again") {
  Machine machine = shared_cpu();
  for (MemoryLevel& level : machine.memory)
    if (level.scope == Scope::compute_unit) level.size = kGiB;
  const StepPlan plan = tiny_decode();
  for (const Op& op : plan.ops) CHECK(kept_bytes(machine, op, step_footprint(plan)) < 1e-6 * step_footprint(plan));
}

TEST_CASE("what a prefill has just written itself is not fetched again") {
  Machine machine = shared_cpu();
  machine.memory[0].size = machine.memory[1].size = kKiB;
  const auto kept_kv = [&](int computed, int fresh) {
    Batch batch;
    batch.sequences = {{.phase = Phase::prefill, .num_computed_tokens = computed, .num_new_tokens = fresh}};
    Bytes kept;
    for (const Op& op : plan_step(tiny_llama(), EngineOptions{}, batch).ops)
      if (op.attention.num_sequences > 0) kept += kept_bytes(machine, op, kKiB);
    return kept;
  };
  CHECK(kept_kv(0, 64) == Bytes{});
  CHECK(kept_kv(64, 64) > Bytes{});
  CHECK(kept_kv(64, 64) / kept_kv(64, 192) == Approx(1));
}

TEST_CASE("an executor that is told the time prices a step after a pause as cold") {
  const Machine machine = shared_cpu();
  const StepPlan plan = tiny_decode();
  SimulatedExecutor executor(machine, tiny_llama(), EngineOptions{});
  const Seconds warm = executor.run(plan).duration;
  CHECK(warm == price_step(machine, plan).seconds);
  executor.begin_at(Seconds(0));
  CHECK(executor.run(plan).duration == warm);
  executor.begin_at(Seconds(1));
  StepPlan cold = plan;
  cold.batch.cold_share = 1;
  CHECK(executor.run(plan).duration / price_step(machine, cold).seconds == Approx(1));
}

TEST_CASE("pauses lengthen a step by their share, and are told apart") {
  Machine machine = cpu_like();
  const StepPlan plan = tiny_decode();
  const Seconds price = price_step(machine, plan).seconds;
  machine.stack.reached.interference_free = 0.8;
  SimulatedExecutor executor(machine, tiny_llama(), EngineOptions{});
  const double open = 1 / (1 + price / Seconds(0.1));
  CHECK(executor.run(plan).duration / price == Approx(1 + 0.25 * open));
  CHECK(executor.pauses() / price == Approx(0.25 * open));
  CHECK(executor.price().seconds == price);
}

TEST_CASE("short steps are open to pauses, long ones have theirs in their price") {
  CHECK(open_to_pauses(Seconds(1e-3)).value() == Approx(1e-3 / 1.01));
  CHECK(open_to_pauses(Seconds(0.1)).value() == Approx(0.05));
  CHECK(open_to_pauses(Seconds(10)).value() == Approx(10 / 101.0));
}

}  // namespace
}  // namespace dculab::sim::test
