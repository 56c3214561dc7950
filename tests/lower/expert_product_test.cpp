// Products of a mixture of experts: what our GPU kernels ask of a device, against the plan that launchers go by.
#include "lower/dculab_gpu/expert_product.hpp"
#include "lower/dculab_gpu/expert_plan.hpp"
#include "lower/dculab_gpu/kernels.hpp"
#include "lower/lower.hpp"
#include "model/plan_step.hpp"
#include "tests/lower/kernel_cases.hpp"
#include "tests/sim/machines.hpp"
#include "tests/sim/models.hpp"
#include "tests/support/catch.hpp"

namespace dculab::lower::test {
namespace {

constexpr int kExperts = 64, kPerToken = 6, kWidth = 1408;

struct ExpertMixture {
  StepPlan plan;

  explicit ExpertMixture(int tokens, Dtype weights = Dtype::f16) {
    ModelShape model = sim::test::llama_3_8b();
    model.kinds[0].experts =
        Experts{.num_experts = kExperts, .num_experts_per_tok = kPerToken, .intermediate_size = kWidth};
    model.kinds[0].mlp.intermediate_size = 0;
    EngineOptions options;
    options.weights = {weights, weights == Dtype::int4 ? 128 : 0};
    plan = plan_step(model, options, uniform_batch(Phase::decode, tokens, 100));
  }

  [[nodiscard]] const Op& op(std::string_view name) const {
    return *std::ranges::find(plan.ops, name, [](const Op& each) { return each.name; });
  }
  [[nodiscard]] Launch launch(std::string_view name) const {
    Device device = sim::test::mi50_like();
    device.kernel_target = "gfx906";
    return lower(op(name), plan, device, {{&dculab_gpu::kMatmul}, {}, {}, {}});
  }
};

}  // namespace

TEST_CASE("one token's experts have a tile of one row each, and ask for each weight once") {
  const ExpertMixture mixture(1);
  const Launch up = mixture.launch("experts_gate_up_proj"), down = mixture.launch("experts_down_proj");
  CHECK(up.tiles.rows == Approx(kPerToken));
  CHECK(up.tiles.columns == 2.0 * kWidth / 16);
  CHECK(up.grid.workgroups == Approx(up.tiles.rows * up.tiles.columns));
  CHECK(up.grid.most_workgroups == up.grid.workgroups);
  CHECK(requests(up, OperandRole::weight) == Approx(1));
  CHECK(requests(up, OperandRole::activation) == Approx(kPerToken * up.tiles.columns));  // the same row for all
  CHECK(requests(down, OperandRole::activation) == Approx(4096.0 / 16));
  CHECK(up.parts == 1);
  CHECK(up.most_parts == 1);
  CHECK(up.streams.workgroups == up.grid.workgroups);
}

TEST_CASE("many tokens have tiles of the GEMM, as many as each expert's rows fill") {
  const ExpertMixture mixture(1024);
  const Op& op = mixture.op("experts_down_proj");
  const auto plan = dculab_gpu::plan_expert_matmul(op.m, kExperts, Dtype::f16);
  REQUIRE(plan.rows == 128);
  const Launch down = mixture.launch("experts_down_proj");
  CHECK(down.tiles.rows == Approx(kExperts).epsilon(0.02));  // of 96 rows each, hardly ever more than 128
  CHECK(down.tiles.rows <= static_cast<double>(plan.tiles));
  CHECK(down.tiles.columns == 4096.0 / 128);
  CHECK(requests(down, OperandRole::weight) == Approx(down.tiles.rows / op.groups.touched));
  CHECK(down.arithmetic.stored_values == Approx(4096.0 * kWidth * down.tiles.rows));
}

TEST_CASE("experts' kernels go by the mean rows of an expert, and by the format of the weights") {
  const auto kernel = [](int tokens, Dtype weights) {
    return dculab_gpu::name(dculab_gpu::kernel_of(ExpertMixture(tokens, weights).op("experts_down_proj"), 64, 1));
  };
  CHECK(kernel(1, Dtype::f16) == "expert_gemv_kernel<64, 1, Half, Half>");
  CHECK(kernel(40, Dtype::bf16) == "expert_gemv_kernel<64, 8, Half, Bf16>");
  CHECK(kernel(100, Dtype::f16) == "expert_gemm_kernel<32, Half, Half>");
  CHECK(kernel(1, Dtype::int4) == "expert_gptq_gemv_kernel<64, 1, Half>");
  CHECK(kernel(4096, Dtype::int4) == "expert_gptq_gemm_kernel<64, 64, Half>");
}

TEST_CASE("a router is two kernels, and a wave for each token") {
  const ExpertMixture mixture(10);
  const Launch route = mixture.launch("route_tokens");
  CHECK(route.kernels == 2);
  CHECK(route.grid.workgroups == 3);
  CHECK(route.streams.workgroups == 3);
  CHECK(mixture.launch("combine_experts").grid.workgroups == 10 * 2);  // pieces of 2048 values
}

}  // namespace dculab::lower::test
