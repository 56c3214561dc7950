// What a program of Triton's unified attention keeps, counted by hand.
#include <algorithm>

#include "lower/lower.hpp"
#include "lower/vllm/kernels.hpp"
#include "model/plan_step.hpp"
#include "tests/sim/machines.hpp"
#include "tests/sim/models.hpp"
#include "tests/support/catch.hpp"

namespace dculab::lower::vllm {
namespace {

StepPlan step(Phase phase) {
  ModelShape model = sim::test::llama_3_8b();
  model.kinds[0].gqa().heads.head_dim = 256;
  EngineOptions options;
  options.activation_dtype = options.kv_cache_dtype = Dtype::f16;
  return plan_step(model, options, uniform_batch(phase, 1, 4096));
}

Launch launch_of(const AttentionKernel& kernel, const sim::Machine& machine, Phase phase, int block_m) {
  Kernels kernels{.matmul = {}, .attention_prefill = {&kernel}, .attention_decode = {&kernel}};
  kernels.parameters.set(kernel.parameters.front(), block_m);
  const StepPlan plan = step(phase);
  const OpKind kind = phase == Phase::decode ? OpKind::attention_decode : OpKind::attention_prefill;
  return lower(*std::ranges::find(plan.ops, kind, &Op::kind), plan, machine, kernels);
}

TEST_CASE("more rows of queries take registers, more tokens of a tile LDS too") {
  const sim::Machine machine = sim::test::mi50_like();  // waves of 64
  // 16 rows: sums of 16 x 256 and scores of 16 x 32, queries of 64 x 256 in pairs, a tile of K and of V of 32 x 256 in
  // pairs, and 2 registers for 16 bytes of it.
  const KernelResources few = launch_of(kTritonUnified2d, machine, Phase::prefill, 16).resources;
  CHECK(few.threads == 256);
  CHECK(few.vgprs == 40 + (16 * (256 + 32) + 64 * 256 / 2 + 2 * 32 * 256 / 2 + 2 * 32 * 256 / 8 * 2) / 256);
  CHECK(few.lds == Bytes(2 * 32 * 256 * 2));
  const KernelResources many = launch_of(kTritonUnified2d, machine, Phase::prefill, 64).resources;
  CHECK(many.vgprs == few.vgprs + 48 * (256 + 32) / 256);
  CHECK(many.lds == few.lds);
  CHECK(launch_of(kTritonUnified3d, machine, Phase::decode, 16).resources.lds == 0.5 * few.lds);
}

TEST_CASE("programs that hold more rows leave less room for others, which alone hide what they wait for") {
  const sim::Machine machine = sim::test::mi50_like();
  const Launch few = launch_of(kTritonUnified3d, machine, Phase::decode, 16);
  const Launch many = launch_of(kTritonUnified3d, machine, Phase::decode, 64);
  CHECK(few.workgroups_per_unit == 2);
  CHECK(many.workgroups_per_unit == 1);
  CHECK(few.overlap == Overlap::neighbours);
  CHECK(launch_of(kTritonUnified3d, sim::test::a100_like(), Phase::decode, 16).overlap == Overlap::partial);
}

TEST_CASE("a program issues instructions for all of its rows, once and for each tile, after loads that wait") {
  const sim::Machine machine = sim::test::mi50_like();
  const Launch launch = launch_of(kTritonUnified3d, machine, Phase::decode, 64);
  const double lanes = 256, programs = 8 * 16, tiles = 8 * 4096 / 16;
  CHECK(launch.arithmetic.issued ==
        FlopCount(programs * (260 * lanes + 9 * 64 * 256) + tiles * (9 * 16 * lanes + 10 * 16 * 256 + 24 * 64 * 16)));
  CHECK(launch.arithmetic.softmax == FlopCount());
  // The arguments; query_start_len once to find the one sequence, once for where it begins; its length; the queries.
  CHECK(launch.loads_before == 5);
  const Launch nvidia = launch_of(kTritonUnified3d, sim::test::a100_like(), Phase::decode, 64);
  CHECK(nvidia.arithmetic.issued == FlopCount());
  CHECK(nvidia.loads_before == 5);
}

TEST_CASE("a tile is looked up at once, of as many tokens as the stack says") {
  Kernels kernels{.matmul = {}, .attention_prefill = {&kTritonUnified2d}, .attention_decode = {}};
  const StepPlan plan = step(Phase::prefill);
  const Op& op = *std::ranges::find(plan.ops, OpKind::attention_prefill, &Op::kind);
  const sim::Machine machine = sim::test::mi50_like();
  const double standard = lower(op, plan, machine, kernels).waits_for_table;
  kernels.parameters.set(kTritonUnified2d.parameters.back(), 16);
  CHECK(lower(op, plan, machine, kernels).waits_for_table == Catch::Detail::Approx(2 * standard).epsilon(0.02));
}

}  // namespace
}  // namespace dculab::lower::vllm
