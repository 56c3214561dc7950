// Products of all experts in one launch of Triton's, against what their sources say of tiles.
#include "lower/fused_experts/kernels.hpp"

#include <algorithm>
#include <cmath>

#include "lower/gemm/kernels.hpp"
#include "lower/llama_cpp/kernels.hpp"
#include "lower/lower.hpp"
#include "model/plan_step.hpp"
#include "tests/lower/kernel_cases.hpp"
#include "tests/sim/machines.hpp"
#include "tests/sim/models.hpp"
#include "tests/support/catch.hpp"

namespace dculab::lower::test {
namespace {

constexpr int kFusedExperts = 64, kFusedPerToken = 4, kFusedWidth = 1024, kHidden = 4096;

struct FusedMixture {
  StepPlan plan;
  Device device = sim::test::mi50_like();

  explicit FusedMixture(int tokens, Dtype weights = Dtype::bf16, const ExpertLoad& load = {},
                        int experts = kFusedExperts) {
    ModelShape model = sim::test::llama_3_8b();
    model.kinds[0].experts =
        Experts{.num_experts = experts, .num_experts_per_tok = kFusedPerToken, .intermediate_size = kFusedWidth};
    model.kinds[0].mlp.intermediate_size = 0;
    EngineOptions options;
    options.weights = {weights, weights == Dtype::int4 ? 128 : 0};
    options.activation_dtype = Dtype::bf16;
    options.expert_load = load;
    plan = plan_step(model, options, uniform_batch(Phase::prefill, 1, tokens));
    device.vendor = Vendor::hygon;
    device.kernel_target.clear();
  }

  [[nodiscard]] const Op& op(std::string_view name) const {
    return *std::ranges::find(plan.ops, name, [](const Op& each) { return each.name; });
  }
  [[nodiscard]] Launch launch(std::string_view name, const ExpertKernel& kernel) const {
    Kernels kernels;
    kernels.matmul = {&gemm::kRocblas};
    kernels.experts = {&kernel};
    return lower(op(name), plan, device, kernels);
  }
};

}  // namespace

TEST_CASE("up to as many tokens as experts have tiles of 16 x 32, more of 64 x 64") {
  const Launch few = FusedMixture(kFusedExperts).launch("experts_down_proj", fused_experts::kDefault);
  CHECK(few.arithmetic.tile_rows == 16);
  CHECK(few.tiles.columns == kHidden / 32.0);
  CHECK(few.slabs == kFusedWidth / 64.0);
  const Launch many = FusedMixture(kFusedExperts + 1).launch("experts_down_proj", fused_experts::kDefault);
  CHECK(many.arithmetic.tile_rows == 64);
  CHECK(many.tiles.columns == kHidden / 64.0);
  CHECK(many.slabs == kFusedWidth / 32.0);
}

TEST_CASE("tiles hold one expert's rows, so that padding is multiplied, and the load says how much") {
  const FusedMixture even(1024), skewed(1024, Dtype::bf16, {.zipf_exponent = 1});
  const Launch launch = even.launch("experts_gate_up_proj", fused_experts::kDefault);
  // 64 rows each on average, of which half the experts have more: a tile and a half.
  CHECK(launch.tiles.rows == Approx(1.48 * kFusedExperts).epsilon(0.03));
  CHECK(launch.arithmetic.rows == Approx(1024.0 * kFusedPerToken / launch.tiles.rows));
  CHECK(requests(launch, OperandRole::weight) == Approx(launch.tiles.rows / kFusedExperts));
  CHECK(requests(launch, OperandRole::activation) == Approx(kFusedPerToken * launch.tiles.columns));
  CHECK(launch.grid.workgroups == Approx(launch.tiles.rows * launch.tiles.columns));
  const Launch other = skewed.launch("experts_gate_up_proj", fused_experts::kDefault);
  CHECK(other.tiles.rows == Approx(skewed.op("experts_gate_up_proj").groups.tiles[6]));
  CHECK(other.tiles.rows != Approx(launch.tiles.rows).epsilon(0.02));
}

TEST_CASE("instructions are those of the values that a slab brings, padding too") {
  const FusedMixture mixture(16);
  const Launch launch = mixture.launch("experts_down_proj", fused_experts::kByValue);
  CHECK(launch.arithmetic.issued.value() == Approx(8.5 * launch.grid.workgroups * kFusedWidth * (16 + 32)));
  CHECK(launch.overlap == Overlap::partial);
  CHECK(mixture.launch("experts_down_proj", fused_experts::kDefault).overlap == Overlap::caches);
}

TEST_CASE("FlagGems widens each weight in every tile of rows, and splits k for few rows") {
  const Launch one = FusedMixture(1, Dtype::int4).launch("experts_down_proj", fused_experts::kFlagGemsWidening);
  CHECK(one.parts == 8);
  CHECK(one.arithmetic.stored_values == 0);
  CHECK(one.arithmetic.issued.value() == Approx(13.5 * one.tiles.rows * kFusedWidth * kHidden));
  const Launch many = FusedMixture(1024, Dtype::int4).launch("experts_down_proj", fused_experts::kFlagGemsWidening);
  CHECK(many.parts == 1);
  CHECK(many.arithmetic.tile_rows == 64);
}

TEST_CASE("weights that the kernel does not take are each expert's product by the library") {
  const FusedMixture mixture(64, Dtype::int4);
  CHECK(expert_kernel_of(
            {.matmul = {}, .attention_prefill = {}, .attention_decode = {}, .experts = {&fused_experts::kTuned}},
            mixture.op("experts_down_proj"), 64, mixture.device) == nullptr);
  CHECK(mixture.launch("experts_down_proj", fused_experts::kTuned).arithmetic.issued.value() == 0);
}

TEST_CASE("a sort by loops over the experts waits for memory in each of them, or of few in the scratchpad") {
  const Launch many = FusedMixture(8, Dtype::bf16, {}, 224).launch("route_tokens", fused_experts::kByValue);
  CHECK(many.chained_loads == 4 * 224);
  CHECK(many.chained_steps == 0);
  CHECK(many.kernels == 5);
  const Launch few = FusedMixture(100, Dtype::bf16, {}, 223).launch("route_tokens", fused_experts::kByValue);
  CHECK(few.chained_loads == 0);
  CHECK(few.chained_steps == 2 * (223 + std::ceil(100.0 * kFusedPerToken / 223)));
  CHECK(few.kernels == 3);
  const FusedMixture mixture(8);
  CHECK(mixture.launch("route_tokens", fused_experts::kTuned).chained_loads == 0);
  CHECK(mixture.launch("route_tokens", fused_experts::kTuned).kernels == 3);
}

// A step's 8 tokens, however many rows the experts get of them.
TEST_CASE("llama.cpp multiplies for all experts at once where a step has more than 8 tokens") {
  const auto takes = [](int tokens) {
    const FusedMixture mixture(tokens, Dtype::int4);
    const Kernels kernels{
        .matmul = {}, .attention_prefill = {}, .attention_decode = {}, .experts = {&llama_cpp::kExperts}};
    return expert_kernel_of(kernels, mixture.op("experts_down_proj"), tokens, mixture.device) != nullptr;
  };
  CHECK_FALSE(takes(1));
  CHECK_FALSE(takes(8));  // 32 rows
  CHECK(takes(9));        // 36 rows
  CHECK(takes(16));
}

}  // namespace dculab::lower::test
