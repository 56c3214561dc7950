// From which batch experts' products are bound by arithmetic.
#include "sim/tables/expert_batch.hpp"

#include "tests/sim/machines.hpp"
#include "tests/sim/models.hpp"
#include "tests/support/catch.hpp"

namespace dculab::sim::test {
namespace {

ModelShape mixture(int experts, int per_token, int intermediate_size = 1024) {
  ModelShape model = llama_3_8b();
  for (LayerKind& kind : model.kinds) {
    kind.experts =
        Experts{.num_experts = experts, .num_experts_per_tok = per_token, .intermediate_size = intermediate_size};
    kind.mlp.intermediate_size = 0;
  }
  return model;
}

}  // namespace

TEST_CASE("an expert needs the same rows whatever the number of experts, so a step of more experts needs more tokens") {
  const Machine machine = mi50_like();
  const auto batch_of = [&](int experts, int intermediate_size) {
    const auto batch = compute_bound_batch(machine, mixture(experts, 2, intermediate_size), {});
    REQUIRE(batch);
    return *batch;
  };
  const ExpertBatch few = batch_of(8, 8192), many = batch_of(64, 8192);
  CHECK(many.tokens == Approx(8 * few.tokens).epsilon(0.15));
  CHECK(many.mean_rows == Approx(few.mean_rows).epsilon(0.15));
  CHECK(few.longest_rows > few.mean_rows);
  CHECK(few.touched <= 8);
  // Eight narrow experts make too few workgroups for all units, so arithmetic takes longer than memory with fewer rows.
  CHECK(batch_of(8, 1024).mean_rows < 0.7 * few.mean_rows);
}

TEST_CASE("more bandwidth turns a mixture compute-bound earlier, and a dense model has no experts") {
  Machine machine = mi50_like();
  const auto before = compute_bound_batch(machine, mixture(16, 2), {});
  machine.memory.back().bandwidth = 2.0 * machine.memory.back().bandwidth;
  const auto after = compute_bound_batch(machine, mixture(16, 2), {});
  REQUIRE(before);
  REQUIRE(after);
  CHECK(after->tokens < before->tokens);
  CHECK_FALSE(compute_bound_batch(machine, llama_3_8b(), {}));
}

// Widening takes as long for a tile of one row as for a full one, so it says nothing of a batch.
TEST_CASE("experts in FP8 turn compute-bound with the rows that they multiply, not by being widened") {
  Machine machine = mi50_like();
  machine.stack.reached.conversion_compute = 1;
  const auto batch_of = [&](WeightFormat weights) {
    EngineOptions options;
    options.weights = weights;
    return compute_bound_batch(machine, mixture(64, 2), options);
  };
  const auto halves = batch_of({Dtype::f16, 0}), bytes = batch_of({Dtype::fp8_e4m3, 0});
  REQUIRE(halves);
  REQUIRE(bytes);
  CHECK(bytes->tokens == Approx(halves->tokens / 2.0).epsilon(0.25));
  CHECK_FALSE(halves->widens_longer);
  machine.stack.reached.conversion_compute = 0.01;
  const auto slowly = batch_of({Dtype::fp8_e4m3, 0});
  REQUIRE(slowly);
  CHECK(slowly->tokens == bytes->tokens);
  CHECK(slowly->widens_longer);
}

TEST_CASE("a skewed load reads fewer experts, and the most chosen has more rows") {
  const Machine machine = mi50_like();
  EngineOptions skewed;
  skewed.expert_load.zipf_exponent = 1;
  const auto even = compute_bound_batch(machine, mixture(64, 2), {});
  const auto hot = compute_bound_batch(machine, mixture(64, 2), skewed);
  REQUIRE(even);
  REQUIRE(hot);
  CHECK(hot->longest_rows / hot->mean_rows > 2 * even->longest_rows / even->mean_rows);
}

}  // namespace dculab::sim::test
