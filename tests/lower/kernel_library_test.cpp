// Kernel libraries: every kernel covers the work of every op that it says it serves.
#include "lower/kernel_library.hpp"

#include <algorithm>
#include <random>
#include <set>

#include "lower/flash_attention/kernels.hpp"
#include "lower/gemm/kernels.hpp"
#include "lower/lower.hpp"
#include "lower/vllm/kernels.hpp"
#include "lower/weight_only/kernels.hpp"
#include "tests/lower/kernel_cases.hpp"
#include "tests/support/catch.hpp"

namespace dculab::lower::test {
namespace {

TEST_CASE("kernels have names of their own and say where they are from") {
  std::set<std::string_view> names;
  for (const MatmulKernel* kernel : matmul_kernels()) {
    CHECK(names.insert(kernel->name).second);
    CHECK_FALSE(kernel->source.empty());
  }
  for (const AttentionKernel* kernel : attention_kernels())
    if (kernel->name != "dculab_gpu") CHECK((names.insert(kernel->name).second && !kernel->source.empty()));
}

TEST_CASE("every parameter of a kernel has a name, what it may be, and the program's own value among that") {
  int parameters = 0;
  for (const AttentionKernel* kernel : attention_kernels()) {
    std::set<std::string_view> names;
    for (const KernelParameter& parameter : kernel->parameters) {
      CAPTURE(kernel->name, parameter.name);
      CHECK(names.insert(parameter.name).second);
      CHECK(std::ranges::find(parameter.allowed, parameter.standard) != parameter.allowed.end());
      CHECK(std::ranges::is_sorted(parameter.allowed));
      CHECK_FALSE((parameter.unit.empty() || parameter.source.empty()));
      ++parameters;
    }
  }
  CHECK(parameters >= 8);
}

TEST_CASE("a chosen parameter changes how its kernel cuts the work, and no other kernel") {
  const StepPlan step = step_of(Phase::decode, 1, 4096);
  const Op& op = find(step, OpKind::attention_decode);
  const Device device = amd("gfx942");
  const auto& kernel = vllm::kTritonUnified3d;
  const auto parameter = [&kernel](std::string_view name) -> const KernelParameter& {
    return *std::ranges::find(kernel.parameters, name, &KernelParameter::name);
  };
  CHECK(kernel.tile(op, step, device, {}).partition_tokens == 256);
  ParameterChoices chosen;
  chosen.set(parameter("segments"), 64);
  CHECK(kernel.tile(op, step, device, chosen).partition_tokens == 64);
  chosen.set(parameter("segments"), 8);
  CHECK(kernel.tile(op, step, device, chosen).partition_tokens == 512);
  chosen.set(parameter("block_m"), 64);
  CHECK(kernel.tile(op, step, device, chosen).padded_rows == 64);
  CHECK(vllm::kTritonUnified2d.tile(op, step, device, chosen).padded_rows == 16);
}

// The walks of all workgroups over a KV head, and no workgroup's alone beyond the longest context.
void check_covers(const AttentionKernel& kernel, const Op& op, const StepPlan& step, const Device& device) {
  const AttentionTile tile = kernel.tile(op, step, device, {});
  const AttentionWork& work = op.attention;
  CAPTURE(kernel.name, device.isa, work.num_sequences, work.num_kv_heads, work.query_tokens, work.context_tokens);
  CHECK(tile.query_tokens >= 1);
  CHECK(tile.query_heads >= 1);
  CHECK(tile.query_heads <= group_size(work));
  CHECK(tile.partition_tokens >= 0);
  const AttentionWalk walk = walk_of(op, step, tile);
  const double head_groups_of_all = static_cast<double>(work.num_kv_heads) * head_groups(work, tile);
  CHECK(walk.tokens >= work.context_tokens);
  CHECK(walk.longest_tokens <= walk.longest_context);
  CHECK(walk.workgroups >= head_groups_of_all * work.num_sequences);
  CHECK(walk.workgroups * walk.longest_tokens >= head_groups_of_all * walk.tokens * (1 - 1e-12));
  CHECK(walk.table_entries >= head_groups_of_all * work.kv_blocks * (1 - 1e-12));
}

TEST_CASE("the grid of every attention kernel covers every step that it serves") {
  std::mt19937 random(11);
  const auto draw = [&random](int low, int high) { return std::uniform_int_distribution(low, high)(random); };
  int served = 0;
  for (int round = 0; round < 200; ++round) {
    ModelShape model = llama_3_8b();
    model.kinds[0].gqa().heads.num_key_value_heads = 1 << draw(0, 3);
    model.kinds[0].gqa().heads.num_attention_heads = model.kinds[0].gqa().heads.num_key_value_heads * draw(1, 12);
    EngineOptions options;
    options.block_size = 1 << draw(0, 8);
    const Phase phase = draw(0, 1) == 0 ? Phase::prefill : Phase::decode;
    const StepPlan step = plan_step(model, options, uniform_batch(phase, draw(1, 200), draw(1, 6000)));
    const Op& op = find(step, phase == Phase::prefill ? OpKind::attention_prefill : OpKind::attention_decode);
    for (const AttentionKernel* kernel : attention_kernels())
      for (const Device& device : devices()) {
        CHECK(serves(*kernel, op, device) == why_not(*kernel, op, device).empty());
        if (!serves(*kernel, op, device)) continue;
        ++served;
        check_covers(*kernel, op, step, device);
      }
  }
  CHECK(served > 1000);
}

TEST_CASE("tiles of every product cover it, and rows beyond a kernel's go to the next one") {
  const StepPlan step = step_of(Phase::decode, 40, 100);
  const Op& op = find(step, OpKind::matmul);
  for (const MatmulKernel* kernel : matmul_kernels())
    for (const Device& device : devices()) {
      if (!kernel->formats.empty()) CHECK(serves(*kernel, op, device) == why_not(*kernel, op, device).empty());
      const Launch launch = lower(op, step, device, {{kernel}, {}, {}});
      const MatmulTile tile = kernel->tile(op, device);
      CHECK(launch.tiles.rows * tile.rows >= static_cast<double>(op.m));
      CHECK(launch.tiles.columns * tile.columns >= static_cast<double>(op.n));
    }
  const Kernels kernels{{&gemm::kSkinnyGemv, &gemm::kHipblaslt}, {}, {}};
  CHECK(matmul_kernel_of(kernels, op, amd("gfx90a")).name == "hipblaslt");
  const StepPlan few = step_of(Phase::decode, 4, 100);
  CHECK(matmul_kernel_of(kernels, find(few, OpKind::matmul), amd("gfx90a")).name == "skinny_gemv");
  CHECK(matmul_kernel_of(kernels, find(few, OpKind::matmul), amd("gfx906")).name == "hipblaslt");
}

TEST_CASE("int4 weights are multiplied in Marlin's tile, by a kernel that takes them") {
  EngineOptions options;
  options.weights = {Dtype::int4, 128};
  const StepPlan step = step_of(Phase::prefill, 1, 512, options);
  const Op& op = find(step, OpKind::matmul);
  CHECK(weight_only::kVllmMarlin.tile(op, a100_like()).rows == 64);
  const Kernels vllm{{&weight_only::kVllmMarlin, &gemm::kCublas}, {}, {}};
  CHECK(matmul_kernel_of(vllm, op, a100_like()).name == "vllm_marlin");
  CHECK(why_not(gemm::kRocblas, op, dcu("gfx928")) ==
        "takes weights of f32, f16, bf16, int8 (one scale a row) with activations of int8");
  CHECK(why_not(gemm::kHipblaslt, op, dcu("gfx906")) == "is not for this device");
}

TEST_CASE("a kernel that does not serve a shape says which it takes") {
  EngineOptions options;
  options.block_size = 8;
  const StepPlan step = step_of(Phase::decode, 1, 100, options);
  const Op& op = find(step, OpKind::attention_decode);
  CHECK(why_not(flash_attention::kFlashAttention2, op, a100_like()) == "takes block sizes of multiples of 16");
  CHECK(why_not(vllm::kRocmPagedAttention, op, amd("gfx90a")) == "takes block sizes of 16, 32");
  CHECK(why_not(vllm::kRocmPagedAttention, op, dcu("gfx928")) == "is not for this device");
  CHECK(why_not(vllm::kPagedAttention, op, dcu("gfx928")).empty());
  const Kernels kernels{{}, {}, {&flash_attention::kFlashAttention2, &vllm::kPagedAttention}};
  CHECK(attention_kernel_of(kernels, op, a100_like()).name == "vllm_paged_attention");
}

// A step that verifies `drafts` tokens of each sequence.
StepPlan verifying_llama(int sequences, int context, int drafts, int block_size = 16) {
  Batch batch = uniform_batch(Phase::decode, sequences, context);
  for (SequenceSlice& slice : batch.sequences) {
    slice.num_new_tokens += drafts;
    slice.num_logits += drafts;
    slice.num_draft_tokens = drafts;
  }
  EngineOptions options;
  options.block_size = block_size;
  return plan_step(llama_3_8b(), options, batch);
}

TEST_CASE("every attention kernel covers steps that verify drafts, or says that it takes one new token") {
  int served = 0, single = 0;
  for (const int block_size : {16, 64}) {
    const StepPlan step = verifying_llama(8, 1000, 4, block_size);
    const Op& op = find(step, OpKind::attention_decode);
    for (const AttentionKernel* kernel : attention_kernels())
      for (const Device& device : devices()) {
        if (serves(*kernel, op, device)) {
          check_covers(*kernel, op, step, device);
          ++served;
        } else if (why_not(*kernel, op, device) == "takes one new token of a sequence") {
          CHECK(kernel->limits.most_new_tokens == 1);
          ++single;
        }
      }
  }
  CHECK(served > 20);
  CHECK(single > 10);
}

TEST_CASE("a program verifies drafts as it runs prefills where its decode kernel takes one token") {
  const StepPlan plain = step_of(Phase::decode, 4, 1000), drafts = verifying_llama(4, 1000, 3);
  const Op& one = find(plain, OpKind::attention_decode);
  const Op& several = find(drafts, OpKind::attention_decode);
  CHECK_FALSE(has_several_new_tokens(one));
  CHECK(has_several_new_tokens(several));
  const auto runs = [](const Kernels& kernels, const Op& op, const Device& device) {
    return attention_kernel_of(kernels, op, device).name;
  };
  Kernels old;
  old.attention_prefill = {&flash_attention::kFlashAttention2};
  old.attention_decode = {&vllm::kPagedAttention};
  CHECK(runs(old, one, a100_like()) == "vllm_paged_attention");
  CHECK(runs(old, several, a100_like()) == "flash_attention_2");
  Kernels triton;
  triton.attention_prefill = {&vllm::kTritonUnified2d};
  triton.attention_decode = {&vllm::kTritonUnified3d};
  CHECK(runs(triton, one, dcu("gfx936")) == "triton_unified_attention_3d");
  CHECK(runs(triton, several, dcu("gfx936")) == "triton_unified_attention_2d");
  // Packed rows of a group and its tokens on Hopper; before, each head walks K and V for itself.
  const auto flash = [&](const AttentionKernel& kernel, const Device& device) {
    return kernel.tile(several, drafts, device, {});
  };
  CHECK(head_groups(several.attention, flash(flash_attention::kFlashAttention3, hopper())) == 1);
  CHECK(head_groups(several.attention, flash(flash_attention::kFlashAttention2, a100_like())) == 4);
  CHECK(flash(flash_attention::kFlashAttention2, a100_like()).partition_tokens == 0);
}

}  // namespace
}  // namespace dculab::lower::test
