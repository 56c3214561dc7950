// What layers of several kinds do alike is found, and priced as if each kind stood alone.
#include "sim/cost/alike_ops.hpp"

#include "model/plan_step.hpp"
#include "sim/cost/step_price.hpp"
#include "tests/sim/machines.hpp"
#include "tests/sim/models.hpp"
#include "tests/support/catch.hpp"

namespace dculab::sim::test {
namespace {

// Two kinds of layers that differ in their MLPs.
ModelShape two_kinds() {
  ModelShape model = tiny_llama();
  model.kinds.push_back(model.kinds[0]);
  model.kinds[1].mlp.intermediate_size = 512;
  for (std::size_t layer = 4; layer < model.layers.size(); ++layer) model.layers[layer] = 1;
  return model;
}

TEST_CASE("attention of two kinds of layers is alike, and their MLPs are not") {
  const StepPlan plan = plan_step(two_kinds(), {}, uniform_batch(Phase::decode, 4, 100));
  const AlikeOps alike(plan.ops);
  int found = 0;
  for (std::size_t index = 0; index < plan.ops.size(); ++index) {
    const Op& op = plan.ops[index];
    const auto first = alike.first(index);
    if (!first) continue;
    ++found;
    CHECK(op.layer_kind == 1);
    CHECK(plan.ops[*first].layer_kind == 0);
    CHECK(plan.ops[*first].name == op.name);
    CHECK(plan.ops[*first].n == op.n);
    CHECK(alike.executions(*first) == 6);
    CHECK(alike.executions(index) == 2);
  }
  CHECK(found == 6);  // two norms, two projections, the cache, attention
  CHECK_FALSE(alike.first(0));
}

TEST_CASE("nothing is alike in layers of one kind") {
  const StepPlan plan = plan_step(llama_3_8b(), {}, uniform_batch(Phase::decode, 4, 100));
  const AlikeOps alike(plan.ops);
  for (std::size_t index = 0; index < plan.ops.size(); ++index) {
    CHECK_FALSE(alike.first(index));
    CHECK(alike.executions(index) == plan.ops[index].count);
  }
}

TEST_CASE("caches that others have emptied are filled once for each op, in all kinds of layers") {
  Machine machine = cpu_like();
  machine.sustained.cold_miss_bandwidth = 0.5;
  machine.memory[2].retention_time = Seconds(5e-3);
  const StepPlan plan = plan_step(two_kinds(), {}, uniform_batch(Phase::decode, 4, 100));
  StepPrice warm, cold;
  price_step(machine, plan, 0, warm);
  price_step(machine, plan, 1, cold);
  Seconds cold_misses;
  for (std::size_t index = 0; index < plan.ops.size(); ++index) {
    CHECK((cold.ops[index].seconds - warm.ops[index].seconds).value() ==
          Approx(cold.ops[index].cold_misses.value()).margin(1e-15));
    cold_misses += plan.ops[index].count * cold.ops[index].cold_misses;
  }
  CHECK(cold_misses > Seconds{});
  CHECK((cold.seconds - warm.seconds).value() == Approx(cold_misses.value()));
}

}  // namespace
}  // namespace dculab::sim::test
