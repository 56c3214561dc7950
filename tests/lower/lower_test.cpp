// What kernels do with the ops of a step: grids that cover the work, and what only one kind of device does.
#include "lower/lower.hpp"

#include <algorithm>
#include <random>
#include <string_view>
#include <vector>

#include "lower/dculab_gpu/geometry.hpp"
#include "lower/dculab_gpu/gptq_plan.hpp"
#include "lower/flash_attention/kernels.hpp"
#include "lower/gemm/kernels.hpp"
#include "model/plan_step.hpp"
#include "tests/sim/machines.hpp"
#include "tests/sim/models.hpp"
#include "tests/support/catch.hpp"

namespace dculab::lower::test {
namespace {

using sim::test::a100_like;
using sim::test::cpu_like;
using sim::test::llama_3_8b;
using sim::test::mi50_like;

const Op& op_named(const StepPlan& plan, std::string_view name) {
  return *std::ranges::find(plan.ops, name, &Op::name);
}

Device gpu(const char* target, const char* compute_capability) {
  Device device = mi50_like();
  device.kernel_target = target;
  device.compute_capability = compute_capability;
  return device;
}

TEST_CASE("a launch of any op covers its work, whatever the device") {
  std::mt19937 random(7);
  const auto draw = [&random](int low, int high) { return std::uniform_int_distribution(low, high)(random); };
  const std::vector<Device> devices{gpu("gfx906", ""), gpu("", ""), gpu("", "8.0"), gpu("", "9.0"), cpu_like()};
  for (int round = 0; round < 200; ++round) {
    EngineOptions options;
    options.block_size = 1 << draw(0, 8);
    options.attention_split.partition_tokens = draw(0, 1) * 512;
    const Phase phase = draw(0, 1) == 0 ? Phase::prefill : Phase::decode;
    const StepPlan plan = plan_step(llama_3_8b(), options, uniform_batch(phase, draw(1, 64), draw(1, 4000)));
    for (const Device& device : devices)
      for (const Op& op : plan.ops) {
        const Launch launch = lower(op, plan, device);
        CAPTURE(op.name, op.m, device.kernel_target, device.compute_capability);
        CHECK(launch.grid.workgroups > 0);
        CHECK(launch.grid.most_workgroups >= launch.grid.workgroups);
        CHECK(launch.workgroups_per_unit >= 1);
        const Arithmetic& arithmetic = launch.arithmetic;
        CHECK((arithmetic.multiply >= op.flops || 2 * arithmetic.issued >= op.flops));
        CHECK(launch.kernels >= 1);
        CHECK(launch.most_parts >= 1);
        CHECK(launch.product.has_value() == (op.kind == OpKind::matmul));
        if (op.attention.num_sequences > 0)
          CHECK(launch.grid.walked_tokens >= op.attention.context_tokens * op.attention.num_kv_heads);
        if (op.kind == OpKind::matmul) {
          const MatmulTile tile = matmul_kernel_of({}, op, device).tile(op, device);
          CHECK(launch.tiles.rows * tile.rows >= static_cast<double>(op.m));
          CHECK(launch.tiles.columns * tile.columns >= static_cast<double>(op.n));
        }
      }
  }
}

TEST_CASE("our products are predicted with as many tiles as the launcher starts") {
  for (const Dtype weights : {Dtype::f16, Dtype::int4})
    for (const int tokens : {9, 32, 33, 64, 65, 100, 128, 129, 300}) {
      EngineOptions options;
      options.weights = {weights, weights == Dtype::int4 ? 32 : 0};
      const StepPlan plan = plan_step(llama_3_8b(), options, uniform_batch(Phase::prefill, 1, tokens));
      const Op& op = op_named(plan, "qkv_proj");
      const auto n = static_cast<int>(op.n), k = static_cast<int>(op.k);
      const bool is_gptq = weights == Dtype::int4;
      CAPTURE(tokens, is_gptq);
      const Launch launch = lower(op, plan, gpu("gfx906", ""));
      CHECK(launch.tiles.rows == (is_gptq ? dculab_gpu::plan_gptq_matmul(tokens, n, k).row_tiles
                                          : dculab_gpu::plan_matmul(tokens, n, k).row_tiles));
      CHECK(launch.tiles.columns == (is_gptq ? dculab_gpu::plan_gptq_matmul(tokens, n, k).column_tiles
                                             : dculab_gpu::plan_matmul(tokens, n, k).column_tiles));
      CHECK(launch.accesses()[0].requests == launch.tiles.rows);
      CHECK(lower(op, plan, cpu_like()).accesses()[0].requests == 1);
    }
}

TEST_CASE("our kernels take up to 8 rows without tiles, libraries one") {
  const auto most_parts = [](int rows, const Kernels& kernels) {
    const StepPlan plan = plan_step(llama_3_8b(), {}, uniform_batch(Phase::decode, rows, 100));
    return lower(op_named(plan, "o_proj"), plan, gpu("gfx906", ""), kernels).most_parts;
  };
  const Kernels library{{&gemm::kRocblas}, {}, {}, {}};
  CHECK(most_parts(8, {}) == 1);
  CHECK(most_parts(9, {}) == 16);  // of 256 values of k
  CHECK(most_parts(1, library) == 1);
  CHECK(most_parts(2, library) == 16);
}

TEST_CASE("our products are split along k as the launcher splits them, a library's as is cheapest") {
  const StepPlan plan = plan_step(llama_3_8b(), {}, uniform_batch(Phase::decode, 16, 100));
  const Op& op = op_named(plan, "o_proj");
  const Launch own = lower(op, plan, gpu("gfx906", ""));
  CHECK(own.parts == dculab_gpu::plan_matmul(16, 4096, 4096).split.parts);
  CHECK(own.parts == 4);  // 32 tiles, 128 workgroups wanted
  CHECK(lower(op, plan, gpu("gfx906", ""), {{&gemm::kRocblas}, {}, {}, {}}).parts == 0);
}

TEST_CASE("our own kernels are predicted by what they ask for, tensor by tensor; a library's by the op's operands") {
  const StepPlan plan = plan_step(llama_3_8b(), {}, uniform_batch(Phase::decode, 16, 100));
  const Kernels library{{&gemm::kRocblas}, {}, {}, {}};
  for (const char* name : {"embed_tokens", "input_layernorm", "rope_and_cache", "o_proj", "lm_head"}) {
    CAPTURE(name);
    const Op& op = op_named(plan, name);
    CHECK(lower(op, plan, gpu("gfx906", "")).streams.count >= 3);
    CHECK(lower(op, plan, gpu("gfx906", ""), library).streams.count == 0);
    CHECK(lower(op, plan, cpu_like()).streams.count == 0);
  }
  CHECK(lower(op_named(plan, "o_proj"), plan, gpu("gfx906", "")).streams.workgroups == 4 * 32);  // 4 parts of k
}

TEST_CASE("what a program moves beside its fused kernels is in the streams too") {
  const StepPlan plan = plan_step(llama_3_8b(), {}, uniform_batch(Phase::decode, 16, 100));
  const Op& op = op_named(plan, "o_proj");
  const auto written = [&](double scale) {
    Bytes total;
    Kernels kernels;
    kernels.unfused.activation_scale = scale;
    const Launch launch = lower(op, plan, gpu("gfx906", ""), kernels);
    for (const Stream& stream : launch.streams.all())
      if (stream.role == OperandRole::output) total += stream.unique;
    return total;
  };
  CHECK(written(2) - written(1) == 2 * 16 * Bytes(2 * 4096));  // x and y, of halves
}

TEST_CASE("what hides behind arithmetic is the kernel's matter") {
  const StepPlan plan = plan_step(llama_3_8b(), {}, uniform_batch(Phase::prefill, 1, 512));
  const Op& product = op_named(plan, "o_proj");
  const Op& attention = op_named(plan, "attention_prefill");
  CHECK(lower(product, plan, gpu("gfx906", "")).overlap == Overlap::caches);
  CHECK(lower(attention, plan, gpu("gfx906", "")).overlap == Overlap::partial);
  CHECK(lower(product, plan, gpu("", "9.0")).overlap == Overlap::caches);  // our own kernels use no copy engine
  CHECK(lower(attention, plan, gpu("", "9.0")).overlap == Overlap::partial);
  Kernels libraries{.matmul = {&gemm::kCublas},
                    .attention_prefill = {&flash_attention::kFlashAttention3},
                    .attention_decode = {&flash_attention::kFlashAttention3}};
  CHECK(lower(product, plan, gpu("", "9.0"), libraries).overlap == Overlap::all);
  CHECK(lower(attention, plan, gpu("", "9.0"), libraries).overlap == Overlap::all);
  CHECK(lower(product, plan, cpu_like()).overlap == Overlap::partial);
  CHECK(lower(attention, plan, cpu_like()).overlap == Overlap::partial);
  const StepPlan decode = plan_step(llama_3_8b(), {}, uniform_batch(Phase::decode, 1, 512));
  CHECK(lower(op_named(decode, "attention_decode"), decode, cpu_like()).overlap == Overlap::dram_in_turn);
  CHECK(lower(op_named(decode, "attention_decode"), decode, gpu("", "9.0")).overlap == Overlap::waves);
  CHECK(lower(op_named(decode, "o_proj"), decode, gpu("", "9.0")).overlap == Overlap::waves);  // a row: GEMV
}

TEST_CASE("rotating and caching are a kernel each on a GPU, where anything is rotated") {
  ModelShape model = llama_3_8b();
  const auto kernels = [&model](const Device& device) {
    const StepPlan plan = plan_step(model, {}, uniform_batch(Phase::decode, 1, 100));
    return lower(op_named(plan, "rope_and_cache"), plan, device).kernels;
  };
  CHECK(kernels(a100_like()) == 2);
  CHECK(kernels(cpu_like()) == 1);
  model.kinds[0].gqa().position.kind = PositionKind::alibi;
  CHECK(kernels(a100_like()) == 1);
}

TEST_CASE("an op of no rows has no workgroups") {
  Op op;
  op.kind = OpKind::rms_norm;
  op.n = 4096;
  for (const Device& device : {Device(cpu_like()), gpu("gfx906", "")})
    CHECK(lower(op, {}, device).grid.workgroups == 0);
}

TEST_CASE("on a CPU one thread may do what is not attention, and hardware prefetches") {
  const StepPlan plan = plan_step(llama_3_8b(), {}, uniform_batch(Phase::decode, 4, 100));
  for (const Op& op : plan.ops) {
    const Launch launch = lower(op, plan, cpu_like());
    CHECK(launch.may_run_inline == (op.attention.num_sequences == 0));
    CHECK_FALSE(launch.waits_for_loads);
    CHECK_FALSE(lower(op, plan, a100_like()).may_run_inline);
  }
}

}  // namespace
}  // namespace dculab::lower::test
