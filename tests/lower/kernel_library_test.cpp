// Kernel libraries: every kernel covers the work of every op that it says it serves, and what each is known for.
#include "lower/kernel_library.hpp"

#include <algorithm>
#include <random>
#include <set>

#include "lower/dculab_gpu/kernels.hpp"
#include "lower/flash_attention/kernels.hpp"
#include "lower/gemm/kernels.hpp"
#include "lower/hygon/kernels.hpp"
#include "lower/llama_cpp/kernels.hpp"
#include "lower/lower.hpp"
#include "lower/sglang/kernels.hpp"
#include "lower/vllm/kernels.hpp"
#include "lower/weight_only/kernels.hpp"
#include "model/plan_step.hpp"
#include "tests/sim/machines.hpp"
#include "tests/sim/models.hpp"
#include "tests/support/catch.hpp"

namespace dculab::lower::test {
namespace {

using sim::test::a100_like;
using sim::test::llama_3_8b;
using sim::test::mi50_like;

Device dcu(const char* isa) {
  Device device = mi50_like();
  device.vendor = Vendor::hygon;
  device.isa = isa;
  return device;
}

Device amd(const char* isa) {
  Device device = dcu(isa);
  device.vendor = Vendor::amd;
  return device;
}

Device hopper() {
  Device device = a100_like();
  device.compute_capability = "9.0";
  return device;
}

const std::vector<Device>& devices() {
  static const std::vector<Device> all{dcu("gfx906"), dcu("gfx928"), dcu("gfx936"), amd("gfx90a"),
                                       amd("gfx942"), a100_like(),   hopper()};
  return all;
}

const Op& find(const StepPlan& plan, OpKind kind) { return *std::ranges::find(plan.ops, kind, &Op::kind); }

StepPlan step_of(Phase phase, int sequences, int context, EngineOptions options = {}) {
  return plan_step(llama_3_8b(), options, uniform_batch(phase, sequences, context));
}

AttentionTile tile_of(const AttentionKernel& kernel, OpKind kind, const StepPlan& step, const Device& device) {
  return kernel.tile(find(step, kind), step, device, {});
}

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
StepPlan verifying(int sequences, int context, int drafts) {
  Batch batch = uniform_batch(Phase::decode, sequences, context);
  for (SequenceSlice& slice : batch.sequences) {
    slice.num_new_tokens += drafts;
    slice.num_logits += drafts;
    slice.num_draft_tokens = drafts;
  }
  return plan_step(llama_3_8b(), {}, batch);
}

TEST_CASE("every attention kernel covers steps that verify drafts, or says that it takes one new token") {
  const StepPlan step = verifying(8, 1000, 4);
  const Op& op = find(step, OpKind::attention_decode);
  int served = 0, single = 0;
  for (const AttentionKernel* kernel : attention_kernels())
    for (const Device& device : devices()) {
      Op asked = op;
      for (const int block_size : {16, 64}) {
        asked.attention.block_size = block_size;
        if (serves(*kernel, asked, device)) {
          check_covers(*kernel, asked, step, device);
          ++served;
        } else if (why_not(*kernel, asked, device) == "takes one new token of a sequence") {
          CHECK(kernel->limits.most_new_tokens == 1);
          ++single;
        }
      }
    }
  CHECK(served > 20);
  CHECK(single > 10);
}

TEST_CASE("a program verifies drafts as it runs prefills where its decode kernel takes one token") {
  const StepPlan plain = step_of(Phase::decode, 4, 1000), drafts = verifying(4, 1000, 3);
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

TEST_CASE("FlashAttention splits until the machine is full") {
  using flash_attention::flash_splits;
  CHECK(flash_splits(200, 216, 64) == 1);
  CHECK(flash_splits(1, 216, 8) == 8);     // 7 would leave one empty; 8 is the most there are pieces for
  CHECK(flash_splits(100, 216, 64) == 2);  // 200 of 216 slots
}

TEST_CASE("on Hopper FlashAttention lets splits stay empty, and never splits four pieces") {
  using flash_attention::EmptySplits;
  using flash_attention::flash_splits;
  CHECK(flash_splits(1, 132, 4, EmptySplits::allowed) == 1);
  CHECK(flash_splits(1, 132, 8, EmptySplits::allowed) == 7);     // 0.875 of the best
  CHECK(flash_splits(8, 132, 128, EmptySplits::allowed) == 15);  // 120 of 132; the best is 33: two whole rounds
  CHECK(flash_splits(106, 132, 128, EmptySplits::allowed) == 1);
}

TEST_CASE("FlashAttention's prefill has a workgroup for each query head, its decode for each group") {
  const AttentionKernel& flash = flash_attention::kFlashAttention2;
  CHECK(tile_of(flash, OpKind::attention_prefill, step_of(Phase::prefill, 16, 512), a100_like()).query_heads == 1);
  CHECK(tile_of(flash, OpKind::attention_decode, step_of(Phase::decode, 16, 512), a100_like()).query_heads == 4);
}

TEST_CASE("a paged kernel asks for each KV byte once a query head, and splits few sequences only") {
  const auto tile = [](int sequences) {
    return tile_of(vllm::kPagedAttention, OpKind::attention_decode, step_of(Phase::decode, sequences, 2048),
                   a100_like());
  };
  CHECK(tile(16).query_heads == 1);
  CHECK(tile(16).partition_tokens == 512);  // 16 x 32 heads
  CHECK(tile(17).partition_tokens == 0);
}

TEST_CASE("Triton's unified attention has 16 rows a program, and 16 segments of few sequences") {
  const auto decode = [](int sequences, int context) {
    return tile_of(vllm::kTritonUnified3d, OpKind::attention_decode, step_of(Phase::decode, sequences, context),
                   dcu("gfx928"));
  };
  CHECK(decode(1, 4096).partition_tokens == 256);
  CHECK(decode(1, 100).partition_tokens == 16);
  CHECK(decode(16, 4096).partition_tokens == 256);  // 16 x 8 KV heads
  CHECK(decode(17, 4096).partition_tokens == 0);
  const AttentionTile prefill =
      tile_of(vllm::kTritonUnified2d, OpKind::attention_prefill, step_of(Phase::prefill, 1, 512), dcu("gfx928"));
  CHECK(prefill.query_tokens == 4);  // of 4 heads each
  CHECK(prefill.query_heads == 4);
}

TEST_CASE("DTK's paged attention serves a group, in short partitions where few workgroups walk") {
  EngineOptions options;
  options.block_size = 64;
  const auto partition = [&options](int sequences, int context) {
    return tile_of(hygon::kPagedAttention, OpKind::attention_decode,
                   step_of(Phase::decode, sequences, context, options), dcu("gfx936"))
        .partition_tokens;
  };
  CHECK(partition(1, 8192) == 256);
  CHECK(partition(64, 8192) == 512);
}

TEST_CASE("DTK's older port of vLLM shares K and V among heads once there are many workgroups") {
  const auto heads = [](int sequences) {
    return tile_of(hygon::kReusingPagedAttention, OpKind::attention_decode, step_of(Phase::decode, sequences, 4096),
                   dcu("gfx906"))
        .query_heads;
  };
  CHECK(heads(1) == 1);   // 32 heads, 8 partitions
  CHECK(heads(5) == 4);   // 160 x 8 = 1280
  CHECK(heads(64) == 2);  // whole contexts, 2048 walks
}

TEST_CASE("SGLang's Triton decode splits contexts to fill the device, into 16 parts at most") {
  const auto tokens = [](int sequences) {
    return tile_of(sglang::kTritonDecode, OpKind::attention_decode, step_of(Phase::decode, sequences, 4096),
                   dcu("gfx928"))
        .partition_tokens;
  };
  CHECK(tokens(1) == 256);
  CHECK(tokens(256) == 0);
}

TEST_CASE("loads of partial results that wait for one another are part of the launch") {
  const StepPlan step = step_of(Phase::decode, 1, 8192);
  const auto chained = [&step](const AttentionKernel& kernel, const Device& device) {
    return lower(find(step, OpKind::attention_decode), step, device, {{}, {}, {&kernel}}).chained_loads;
  };
  CHECK(chained(vllm::kPagedAttention, a100_like()) == 16);  // of 512 tokens
  CHECK(chained(flash_attention::kFlashAttention2, a100_like()) >
        4 * chained(flash_attention::kFlashAttention3, hopper()) * 0.5);
  CHECK(chained(llama_cpp::kPerHead, a100_like()) == 0);
  CHECK(chained(dculab_gpu::kAttention, a100_like()) == 0);
}

}  // namespace
}  // namespace dculab::lower::test
