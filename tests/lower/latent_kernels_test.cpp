// Kernels of latents and of recurrent states: whom they serve, and how they cut the work.
#include <algorithm>

#include "lower/dculab_gpu/kernel_id.hpp"
#include "lower/gemm/kernels.hpp"
#include "lower/latent_attention/kernels.hpp"
#include "lower/lower.hpp"
#include "lower/vllm/kernels.hpp"
#include "model/plan_step.hpp"
#include "tests/lower/kernel_cases.hpp"
#include "tests/sim/machines.hpp"
#include "tests/sim/models.hpp"
#include "tests/support/catch.hpp"

namespace dculab::lower::test {
namespace {

using sim::test::a100_like;
using sim::test::llama_3_8b;
using sim::test::mi50_like;

[[nodiscard]] Device nvidia_hopper() {
  Device device = a100_like();
  device.vendor = Vendor::nvidia;
  device.compute_capability = "9.0";
  return device;
}

[[nodiscard]] ModelShape with_latents() {
  ModelShape model = llama_3_8b();
  model.kinds[0].attention = Mla{.num_attention_heads = 128,
                                 .q_lora_rank = 1536,
                                 .kv_lora_rank = 512,
                                 .qk_nope_head_dim = 128,
                                 .qk_rope_head_dim = 64,
                                 .v_head_dim = 128};
  return model;
}

[[nodiscard]] ModelShape with_entries() {
  ModelShape model = llama_3_8b();
  model.kinds[0].attention = CompressedAttention{.num_attention_heads = 128,
                                                 .head_dim = 512,
                                                 .qk_rope_head_dim = 64,
                                                 .q_lora_rank = 1024,
                                                 .o_groups = 8,
                                                 .o_lora_rank = 1024,
                                                 .sliding_window = 128,
                                                 .compress_ratio = 4,
                                                 .index_n_heads = 64,
                                                 .index_head_dim = 128,
                                                 .index_topk = 512};
  model.residual_streams = 4;
  model.sinkhorn_iterations = 20;
  return model;
}

[[nodiscard]] StepPlan plan_of(const ModelShape& model, Phase phase, int batch, int tokens, int block_size = 64) {
  EngineOptions options;
  options.block_size = block_size;
  return plan_step(model, options, uniform_batch(phase, batch, tokens));
}

}  // namespace

TEST_CASE("kernels of latents serve nothing else, and others no latents", "[latents]") {
  const StepPlan latents = plan_of(with_latents(), Phase::decode, 2, 1000);
  const StepPlan plain = plan_of(llama_3_8b(), Phase::decode, 2, 1000);
  const Op& over_latents = find(latents, OpKind::attention_decode);
  const Op& over_heads = find(plain, OpKind::attention_decode);
  CHECK(serves(latent_attention::kTritonMla, over_latents, mi50_like()));
  CHECK_FALSE(serves(latent_attention::kTritonMla, over_heads, mi50_like()));
  CHECK(why_not(latent_attention::kTritonMla, over_heads, mi50_like()) == "takes latents alone");
  CHECK_FALSE(serves(vllm::kTritonUnified3d, over_latents, mi50_like()));
  CHECK(serves(latent_attention::kFlashMla, over_latents, nvidia_hopper()));
  CHECK_FALSE(serves(latent_attention::kFlashMla, over_latents, mi50_like()));
  const StepPlan small_blocks = plan_of(with_latents(), Phase::decode, 2, 1000, 16);
  CHECK(why_not(latent_attention::kFlashMla, find(small_blocks, OpKind::attention_decode), nvidia_hopper()) ==
        "takes block sizes of 64");
}

TEST_CASE("a kernel of entries serves nothing else, and gathers for each token what it has chosen", "[latents]") {
  const ModelShape model = with_entries();
  const StepPlan plan = plan_of(model, Phase::prefill, 1, 4096);
  const Op& op = find(plan, OpKind::attention_prefill);
  CHECK(serves(latent_attention::kFlashMlaSparse, op, nvidia_hopper()));
  CHECK(why_not(latent_attention::kFlashMla, op, nvidia_hopper()) == "takes no compressed entries");
  const StepPlan latents = plan_of(with_latents(), Phase::decode, 2, 1000);
  CHECK(why_not(latent_attention::kFlashMlaSparse, find(latents, OpKind::attention_decode), nvidia_hopper()) ==
        "takes compressed entries alone");
  const Kernels kernels{
      .matmul = {}, .attention_prefill = {&latent_attention::kFlashMlaSparse}, .attention_decode = {}};
  const Launch launch = lower(op, plan, nvidia_hopper(), kernels);
  CHECK(launch.grid.workgroups == 4096 * 128 / 64);
  // 512 entries from token 2048 on, one more for every 4 tokens before; each with a window of 128 tokens.
  const double gathered = 4.0 * 512 * 511 / 2 + 512 + 512 * 2048.0 + 128 * 4096.0;
  CHECK(launch.grid.walked_tokens == 2 * gathered);
  for (const Access& access : launch.accesses())
    if (access.role == OperandRole::kv_read) CHECK(access.requests == Approx(2 * gathered / (1024 + 4096)));

  const Launch scores = lower(find(plan, OpKind::index_scores), plan, nvidia_hopper(), kernels);
  CHECK(scores.arithmetic.pipe == Pipe::matmul);
  CHECK(scores.arithmetic.rows == 128);
}

TEST_CASE("an indexer's kernel may score what no sequence has", "[latents]") {
  const StepPlan plan = plan_of(with_entries(), Phase::decode, 3, 4096);  // 1024 entries each
  const auto launch_of = [&plan](const Device& device, double scored) {
    Kernels kernels{.matmul = {}, .attention_prefill = {}, .attention_decode = {}};
    kernels.entries.scored_entries = scored;
    return lower(find(plan, OpKind::index_scores), plan, device, kernels);
  };
  const Launch own = launch_of(nvidia_hopper(), 0), all = launch_of(nvidia_hopper(), 4096);
  CHECK(own.grid.workgroups == 3 * 1024 / 256);
  CHECK(all.grid.workgroups == 4 * own.grid.workgroups);
  CHECK(own.arithmetic.softmax.value() == 3.0 * 3 * 1024 * 64);  // cut off, weighted, added: of each head
  CHECK(own.arithmetic.multiply.value() == 2.0 * 128 * 3 * 1024 * 64);
  CHECK(all.arithmetic.multiply.value() == 4 * own.arithmetic.multiply.value());
  for (int index = 0; index < own.num_accesses; ++index) {
    const Access& before = own.access_storage[static_cast<std::size_t>(index)];
    const Access& after = all.access_storage[static_cast<std::size_t>(index)];
    if (before.role == OperandRole::kv_read) CHECK(after.requests == 4 * before.requests);
    if (before.role == OperandRole::output) CHECK(after.unique == 4 * before.unique);
  }
  CHECK(launch_of(nvidia_hopper(), 512).grid.workgroups == own.grid.workgroups);
  const StepPlan prefill = plan_of(with_entries(), Phase::prefill, 1, 4096);
  Kernels kernels{.matmul = {}, .attention_prefill = {}, .attention_decode = {}};
  const Launch of_own = lower(find(prefill, OpKind::index_scores), prefill, nvidia_hopper(), kernels);
  kernels.entries.scored_entries = 1 << 18;
  CHECK(lower(find(prefill, OpKind::index_scores), prefill, nvidia_hopper(), kernels).grid.workgroups ==
        of_own.grid.workgroups);
}

TEST_CASE("a program's kernels for entries and streams are as many as its stack says", "[latents]") {
  const StepPlan plan = plan_of(with_entries(), Phase::decode, 1, 4096);
  Kernels kernels{.matmul = {&gemm::kCublas}, .attention_prefill = {}, .attention_decode = {}};
  const auto kernels_of = [&](OpKind kind) { return lower(find(plan, kind), plan, nvidia_hopper(), kernels).kernels; };
  const auto kernels_named = [&](std::string_view name) {
    return lower(*std::ranges::find(plan.ops, name, &Op::name), plan, nvidia_hopper(), kernels).kernels;
  };
  CHECK(kernels_of(OpKind::compress_kv) == 1);
  CHECK(kernels_named("rope_and_cache") == 2);
  CHECK(kernels_named("rotate_output") == 1);  // it writes to no cache
  kernels.entries = {.compress_kernels = 2, .index_kernels = 6, .half_kernels = 3};
  CHECK(kernels_of(OpKind::compress_kv) == 2);
  CHECK(kernels_of(OpKind::index_scores) == 6);
  CHECK(kernels_named("half_to_streams") == 4);
  CHECK(kernels_named("streams_to_half") == 1);
}

TEST_CASE("Triton's decode over latents has a program for 16 heads and a part of a context", "[latents]") {
  const StepPlan plan = plan_of(with_latents(), Phase::decode, 3, 4096);
  const Kernels kernels{.matmul = {}, .attention_prefill = {}, .attention_decode = {&latent_attention::kTritonMla}};
  const Launch launch = lower(find(plan, OpKind::attention_decode), plan, mi50_like(), kernels);
  CHECK(launch.grid.workgroups == 3 * (128 / 16) * 4);
  for (const Access& access : launch.accesses())
    if (access.role == OperandRole::kv_read) {
      CHECK(access.unique.value() == 3.0 * 4096 * 576 * 2);
      CHECK(access.requests == 128 / 16);
    }
}

TEST_CASE("expanded K and V need no blocks", "[latents]") {
  const StepPlan plan = plan_of(with_latents(), Phase::prefill, 1, 256, 8);
  const Op& op = find(plan, OpKind::attention_prefill);
  CHECK_FALSE(op.attention.is_paged);
  CHECK(serves(vllm::kTritonUnified2d, op, mi50_like()));  // in blocks of 16 alone
}

TEST_CASE("a delta net decodes by sequence, head and columns, and prefills by chunks", "[delta_net]") {
  ModelShape model = llama_3_8b();
  LayerKind recurrent = model.kinds[0];
  recurrent.attention = GatedDeltaNet{
      .num_key_heads = 16, .num_value_heads = 32, .key_head_dim = 128, .value_head_dim = 128, .conv_kernel = 4};
  add_layer(model, recurrent);
  const auto launch_of = [&model](Phase phase, int batch, int tokens) {
    const StepPlan plan = plan_of(model, phase, batch, tokens);
    return lower(find(plan, OpKind::delta_rule), plan, a100_like(),
                 {.matmul = {}, .attention_prefill = {}, .attention_decode = {}});
  };
  const Launch decode = launch_of(Phase::decode, 2, 100);
  CHECK(decode.grid.workgroups == 2 * 32 * 128 / 8);
  CHECK(decode.kernels == 1);
  CHECK(decode.arithmetic.multiply.value() == 2.0 * 32 * 7 * 128 * 128);
  const Launch prefill = launch_of(Phase::prefill, 1, 640);
  CHECK(prefill.grid.workgroups == 10 * 32);
  CHECK(prefill.kernels == 6);
  CHECK(prefill.arithmetic.pipe == Pipe::matmul);
}

TEST_CASE("our own kernels expand a sequence's heads part by part, and piece by piece", "[latents]") {
  const Device device = mi50_like();
  const auto launch_of = [&device](int batch, int tokens, std::string_view name) {
    const StepPlan plan = plan_of(with_latents(), Phase::prefill, batch, tokens);
    return lower(*std::ranges::find(plan.ops, name, [](const Op& op) { return op.name; }), plan, device, {});
  };
  // A head of 100,000 tokens is 64.1 MB, of which 256 MiB hold 4.
  CHECK(launch_of(1, 2048, "kv_b_proj").kernels == 3 * 2);
  CHECK(launch_of(5, 100, "kv_b_proj").kernels == 3 * 5);
  CHECK(launch_of(5, 100, "attention_prefill").kernels == 5);
  CHECK(launch_of(1, 100000, "kv_b_proj").kernels == 3 * (128 / 4) * 98);
  CHECK(launch_of(1, 100000, "attention_prefill").kernels == 128 / 4);

  const Launch one = launch_of(1, 1000, "kv_b_proj");
  double read = 0, written = 0;
  for (const Stream& stream : one.streams.all()) {
    if (stream.role == OperandRole::activation) read += stream.unique.value();
    if (stream.role == OperandRole::output) written += stream.unique.value();
  }
  CHECK(read == 2.0 * 1000 * (576 + 512 + 128 * 256));  // gathered, multiplied, stored
  CHECK(written == 2.0 * 1000 * (576 + 128 * 256 + 128 * (192 + 128)));
}

TEST_CASE("a program that widens up-projections on loading reads them so in absorbed products alone", "[latents]") {
  EngineOptions options;
  options.weights = {Dtype::fp8_e4m3, 0};
  options.activation_dtype = Dtype::bf16;
  options.activations = ActivationMode::fp8;  // which the wider copies are not multiplied in
  Kernels kernels{.matmul = {&gemm::kRocblas},
                  .attention_prefill = {&vllm::kTritonUnified2d},
                  .attention_decode = {&latent_attention::kTritonMla}};
  kernels.unfused.bytes_per_absorbed_weight = 2;
  const auto weights_of = [&](Phase phase, std::string_view name) {
    const StepPlan plan = plan_step(with_latents(), options, uniform_batch(phase, 2, 100));
    const Op& op = *std::ranges::find(plan.ops, name, [](const Op& each) { return each.name; });
    const Launch launch = lower(op, plan, mi50_like(), kernels);
    CHECK((name == "kv_b_proj" || launch.arithmetic.multiplied_in == Dtype::bf16));
    const Access& weights = *std::ranges::find(launch.accesses(), OperandRole::weight, &Access::role);
    return std::pair(weights.unique.value(), launch.arithmetic.stored);
  };
  CHECK(weights_of(Phase::decode, "absorb_k") == std::pair(2.0 * 128 * 128 * 512, Dtype::bf16));
  CHECK(weights_of(Phase::decode, "absorb_v") == std::pair(2.0 * 128 * 128 * 512, Dtype::bf16));
  CHECK(weights_of(Phase::prefill, "kv_b_proj") == std::pair(128.0 * 256 * 512, Dtype::fp8_e4m3));
}

TEST_CASE("an absorbed product of ours is one launch", "[latents]") {
  const StepPlan plan = plan_of(with_latents(), Phase::decode, 3, 4096);
  for (const std::string_view name : {"absorb_k", "absorb_v"})
    CHECK(lower(*std::ranges::find(plan.ops, name, [](const Op& op) { return op.name; }), plan, mi50_like(), {})
              .kernels == 1);
}

TEST_CASE("our own kernels of latents are those that run, in tiles of 16 rows of heads and tokens", "[latents]") {
  const Device device = mi50_like();
  const auto kernel = [](const StepPlan& plan, std::string_view op) {
    const Op& found = *std::ranges::find(plan.ops, op, [](const Op& each) { return each.name; });
    return dculab_gpu::name(dculab_gpu::kernel_of(found, 64, 1));
  };
  const StepPlan decode = plan_of(with_latents(), Phase::decode, 3, 4096);
  CHECK(kernel(decode, "absorb_k") == "absorb_k_kernel<4, Half>");
  CHECK(kernel(decode, "attention_decode") == "latent_attention_kernel<64, Half>");
  CHECK(kernel(decode, "absorb_v") == "absorb_v_kernel<64, 4, Half, Half>");
  CHECK(kernel(decode, "rope_and_cache") == "part_rotary_embedding_kernel<64>");
  const StepPlan prefill = plan_of(with_latents(), Phase::prefill, 1, 256);
  CHECK(kernel(prefill, "kv_b_proj") == "gemm_kernel<128, Half, Half>");
  CHECK(kernel(prefill, "attention_prefill") == "expanded_attention_kernel<64, HalfPair>");
  for (const char* const name : {"absorb_k_kernel<4, Half>", "latent_attention_kernel<64, Half>",
                                 "absorb_v_kernel<64, 4, Half, Half>", "expanded_attention_kernel<64, HalfPair>"})
    CHECK(dculab_gpu::name(dculab_gpu::parse_kernel(name).value()) == name);

  CHECK(lower(find(decode, OpKind::rope_and_cache), decode, device, {}).kernels == 3);
  const Op& expansion = *std::ranges::find(prefill.ops, "kv_b_proj", [](const Op& each) { return each.name; });
  CHECK(lower(expansion, prefill, device, {}).kernels == 3);

  const Op& attention = find(decode, OpKind::attention_decode);
  const Launch launch = lower(attention, decode, device, {});
  CHECK(launch.grid.workgroups == 3 * (128 / 16) * (4096 / 512));
  for (const Access& access : launch.accesses())
    if (access.role == OperandRole::kv_read) CHECK(access.requests == 128 / 16);
}

TEST_CASE("absorbed products of ours read a head's weights once for each tile of its tokens", "[latents]") {
  const StepPlan plan = plan_of(with_latents(), Phase::decode, 11, 1000);  // two tiles of up to 8 tokens
  for (const auto& [name, columns] : {std::pair{"absorb_k", 1}, {"absorb_v", 128 / 16}}) {
    INFO(name);
    const Op& op = *std::ranges::find(plan.ops, std::string_view(name), [](const Op& each) { return each.name; });
    const Launch launch = lower(op, plan, mi50_like(), {});
    CHECK(launch.tiles.rows == 128 * 2);
    CHECK(launch.grid.workgroups == 128 * 2 * columns);
    CHECK(launch.streams.workgroups == launch.grid.workgroups);
    for (const Access& access : launch.accesses())
      if (access.role == OperandRole::weight) CHECK(access.requests == Approx(2));
  }
}

}  // namespace dculab::lower::test
