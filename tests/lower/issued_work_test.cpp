// What our GPU kernels issue, against the loops of what nvcc 13.0 makes of them for sm_90, and where that counts.
#include "lower/dculab_gpu/issued_work.hpp"

#include <algorithm>
#include <string_view>

#include "lower/lower.hpp"
#include "model/plan_step.hpp"
#include "tests/sim/machines.hpp"
#include "tests/sim/models.hpp"
#include "tests/support/catch.hpp"

namespace dculab::lower::dculab_gpu::test {
namespace {

constexpr int kLanes = 256;

Op attention(OpKind kind, int group, Dtype kv) {
  Op op;
  op.kind = kind;
  op.activation_dtype = Dtype::f16;
  op.attention.num_kv_heads = 1;
  op.attention.num_query_heads = group;
  op.attention.head_dim = op.attention.value_dim = 128;
  op.attention.kv_dtype = kv;
  return op;
}

// Of a lane, in a step of the walk.
double decode_step(int heads, Dtype kv) {
  return attention_instructions(attention(OpKind::attention_decode, heads, kv), heads).each_tile / kLanes;
}

// Of a lane, for `values` more values of k.
double for_more_k(KernelId kernel, int values) {
  Op op;
  op.n = 1;
  op.k = 60 * values;
  const double less = issued_product(op, kernel, 1).issued;
  op.k += values;
  return (issued_product(op, kernel, 1).issued - less) / kLanes;
}

const Op& op_named(const StepPlan& plan, std::string_view name) {
  return *std::ranges::find(plan.ops, name, &Op::name);
}

StepPlan step(Phase phase, int batch, WeightFormat weights) {
  EngineOptions options;
  options.weights = weights;
  options.activation_dtype = options.kv_cache_dtype = Dtype::f16;
  return plan_step(sim::test::llama_3_8b(), options, uniform_batch(phase, batch, 300));
}

}  // namespace

TEST_CASE("decode attention issues what its compiled loop has", "[issued_work]") {
  CHECK(decode_step(1, Dtype::f16) == Approx(417).epsilon(0.02));
  CHECK(decode_step(2, Dtype::f16) == Approx(510).epsilon(0.02));
  CHECK(decode_step(4, Dtype::f16) == Approx(403).epsilon(0.02));
  CHECK(decode_step(8, Dtype::f16) == Approx(119 + 2 * 326).epsilon(0.02));  // a team of two
  CHECK(decode_step(32, Dtype::f16) == Approx(119 + 8 * 326).epsilon(0.02));
  CHECK(decode_step(1, Dtype::fp8_e4m3) == Approx(1229).epsilon(0.02));
  CHECK(decode_step(2, Dtype::fp8_e4m3) == Approx(749).epsilon(0.02));
  CHECK(decode_step(4, Dtype::fp8_e4m3) == Approx(120 + 2 * 670).epsilon(0.02));
}

TEST_CASE("attention over latents issues what its compiled loops have", "[issued_work]") {
  const auto tile = [](Dtype kv) {
    Op op = attention(OpKind::attention_decode, 16, kv);
    op.attention.is_latent = true;
    op.attention.head_dim = 576;
    return 0.75 * attention_instructions(op, 16).each_tile / kLanes;  // at the rate of a tile of sums
  };
  CHECK(tile(Dtype::f16) == Approx(5 * 205 + 8 * 83 + 360).epsilon(0.02));
  CHECK(tile(Dtype::fp8_e5m2) == Approx(3 * 485 + 8 * 92 + 318).epsilon(0.02));
  CHECK(tile(Dtype::fp8_e4m3) == Approx(3 * 741 + 8 * 110 + 318).epsilon(0.02));
  CHECK(tile(Dtype::bf16) == Approx(3 * 177 + 4 * 89 + 330).epsilon(0.05));
}

TEST_CASE("products issue what their compiled loops have", "[issued_work]") {
  const auto gemv = [](int rows, Dtype stored) {
    return for_more_k({.kernel = Kernel::gemv, .wave_size = 32, .rows = rows, .values = Dtype::f16, .stored = stored},
                      256);
  };
  CHECK(gemv(1, Dtype::f16) == Approx(140).epsilon(0.03));
  CHECK(gemv(4, Dtype::fp8_e4m3) == Approx(480).epsilon(0.06));
  const auto gemm = [](int rows, Dtype stored) {
    const int values = stored == Dtype::f16 ? 32 : 16;
    return 0.75 * for_more_k({.kernel = Kernel::gemm, .rows = rows, .values = Dtype::f16, .stored = stored}, values);
  };
  CHECK(gemm(128, Dtype::f16) == Approx(8 * 344 + 79).epsilon(0.02));
  CHECK(gemm(32, Dtype::f16) == Approx(8 * 124 + 55).epsilon(0.02));
  CHECK(gemm(128, Dtype::fp8_e4m3) == Approx(8 * 152 + 159).epsilon(0.02));
  const auto gptq = [](Kernel kernel, int rows, int k) {
    return for_more_k({.kernel = kernel, .wave_size = 32, .rows = rows, .values = Dtype::f16}, k);
  };
  CHECK(gptq(Kernel::gptq_gemv, 1, 1024) == Approx(655).epsilon(0.01));
  CHECK(gptq(Kernel::gptq_gemv, 8, 1024) == Approx(2297).epsilon(0.04));
  CHECK(0.75 * gptq(Kernel::gptq_gemm, 32, 32) == Approx(1078).epsilon(0.01));
  CHECK(0.75 * gptq(Kernel::gptq_gemm, 64, 32) == Approx(1653).epsilon(0.01));
}

TEST_CASE("our kernels use no matrix cores; halves of more than 8 rows go to the library", "[issued_work]") {
  sim::Machine machine = sim::test::a100_like();
  machine.has_matrix_cores = true;
  for (const Phase phase : {Phase::prefill, Phase::decode})
    for (const WeightFormat weights : {WeightFormat{Dtype::f16, 0}, {Dtype::fp8_e4m3, 0}, {Dtype::int4, 128}}) {
      const StepPlan plan = step(phase, 4, weights);
      for (const Op& op : plan.ops) {
        if (op.kind != OpKind::matmul && op.attention.num_sequences == 0) continue;
        if (op.kind == OpKind::rope_and_cache) continue;
        const Launch launch = lower(op, plan, machine);
        const bool by_library = op.kind == OpKind::matmul && op.m > 8 && op.weight_format.dtype == Dtype::f16;
        CAPTURE(op.name, op.m, name(op.weight_format.dtype));
        CHECK(launch.arithmetic.has_matrix_instructions == by_library);
        CHECK((launch.arithmetic.issued > FlopCount()) != by_library);
        CHECK((launch.arithmetic.multiply > FlopCount()) == by_library);
      }
    }
}

TEST_CASE("where nothing was counted our kernels multiply on the vector units", "[issued_work]") {
  const StepPlan plan = step(Phase::decode, 64, {Dtype::int4, 128});
  sim::Machine machine = sim::test::mi50_like();
  machine.has_matrix_cores = true;  // as CDNA
  for (const char* name : {"o_proj", "attention_decode"}) {
    const Launch launch = lower(op_named(plan, name), plan, machine);
    CHECK_FALSE(launch.arithmetic.has_matrix_instructions);
    CHECK(launch.arithmetic.issued == FlopCount());
    CHECK(launch.arithmetic.multiply >= op_named(plan, name).flops);
  }
}

}  // namespace dculab::lower::dculab_gpu::test
