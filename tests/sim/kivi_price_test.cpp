// What a KIVI cache costs a GPU beside attention.
#include <algorithm>

#include "model/plan_step.hpp"
#include "sim/cost/step_price.hpp"
#include "tests/sim/machines.hpp"
#include "tests/sim/models.hpp"
#include "tests/support/catch.hpp"

namespace dculab::sim::test {

TEST_CASE("a KIVI cache costs a GPU nothing where a step rotates nothing and completes no group") {
  EngineOptions options;
  options.kv_cache_dtype = Dtype::kivi4;
  const auto caching = [&](PositionKind positions, int context) {
    ModelShape model = llama_3_8b();
    model.kinds[0].gqa().position.kind = positions;
    const StepPlan plan = plan_step(model, options, uniform_batch(Phase::decode, 4, context));
    const auto op = std::ranges::find(plan.ops, OpKind::rope_and_cache, &Op::kind);
    return price_step(mi50_like(), plan).ops[static_cast<std::size_t>(op - plan.ops.begin())];
  };
  CHECK(caching(PositionKind::alibi, 300).seconds == Seconds());
  CHECK(caching(PositionKind::alibi, 300).kernels == 0);
  CHECK(caching(PositionKind::alibi, 320).kernels == 1);
  CHECK(caching(PositionKind::alibi, 320).seconds > mi50_like().overheads.kernel_launch);
  CHECK(caching(PositionKind::rope, 300).kernels == 1);
  CHECK(caching(PositionKind::rope, 320).kernels == 2);
}

}  // namespace dculab::sim::test
