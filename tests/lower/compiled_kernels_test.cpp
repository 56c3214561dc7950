// Whether the kernels that are chosen here follow the launchers: each must be in the table read from the code objects.
#include "lower/dculab_gpu/compiled_kernels.hpp"

#include <set>
#include <string>

#include "lower/lower.hpp"
#include "model/plan_step.hpp"
#include "tests/sim/machines.hpp"
#include "tests/sim/models.hpp"
#include "tests/support/catch.hpp"

namespace dculab::lower::dculab_gpu::test {
namespace {

constexpr int kWaveSize = 64;

struct Target {
  const char* name;
  int wave_size = kWaveSize;
};
constexpr Target kTargets[] = {{"gfx906"}, {"gfx908"}, {"gfx90a"}, {"sm_80", 32}, {"sm_90", 32}};

const CompiledKernel* find_kernel(std::string_view target, std::string_view name) {
  for (const CompiledKernel& kernel : compiled_kernels())
    if (kernel.target == target && kernel.name == name) return &kernel;
  return nullptr;
}

ModelShape model_of(int head_dim, int num_kv_heads, Dtype dtype) {
  ModelShape model = sim::test::llama_3_8b();
  model.kinds[0].gqa().heads.head_dim = head_dim;
  model.hidden_size = model.kinds[0].gqa().heads.num_attention_heads * head_dim;
  model.kinds[0].gqa().heads.num_key_value_heads = num_kv_heads;
  model.dtype = dtype;
  return model;
}

// Calls check(op, plan) for the ops of decode and prefill steps of `m` tokens.
template <typename Check>
void for_ops(const ModelShape& model, EngineOptions options, int m, Check check) {
  for (const int heads_per_workgroup : {0, 1}) {
    options.attention_split.query_heads_per_workgroup = heads_per_workgroup;
    for (const Batch& batch : {uniform_batch(Phase::decode, m, 300), uniform_batch(Phase::prefill, 1, m)}) {
      const StepPlan plan = plan_step(model, options, batch);
      for (const Op& op : plan.ops) check(op, plan);
    }
  }
}

// Every op's kernel is in the table, and is the one whose resources a machine of the target gets.
void check_all_known(const ModelShape& model, const EngineOptions& options, int m) {
  for (const auto& [target, wave_size] : kTargets) {
    sim::Machine machine = sim::test::mi50_like();
    machine.kernel_target = target;
    machine.waves.wave_size = wave_size;
    std::set<std::string> unknown;
    for_ops(model, options, m, [&](const Op& op, const StepPlan& plan) {
      const int heads = plan.attention_split.query_heads_per_workgroup == 0 ? model.heads().group_size() : 1;
      const std::string wanted = name(kernel_of(op, wave_size, heads));
      const CompiledKernel* kernel = find_kernel(target, wanted);
      const KernelResources resources = lower(op, plan, machine).resources;
      const bool same = kernel != nullptr && resources.vgprs == kernel->resources.vgprs &&
                        resources.lds == kernel->resources.lds && resources.threads == kernel->resources.threads;
      if (!same) unknown.insert(std::string(op.name) + ": " + wanted);
    });
    INFO(target << ", " << m << " tokens");
    CHECK(unknown == std::set<std::string>{});
  }
}

}  // namespace

TEST_CASE("the kernel of every op is in the table of compiled kernels: heads, groups and KV formats",
          "[compiled_kernels]") {
  for (const int head_dim : {64, 80, 96, 128, 256})
    for (const int num_kv_heads : {1, 2, 4, 8, 16, 32})
      for (const Dtype kv : {Dtype::f16, Dtype::bf16, Dtype::fp8_e4m3, Dtype::fp8_e5m2}) {
        if (head_dim == 256 && num_kv_heads == 1) continue;  // no workgroup serves 32 such heads
        EngineOptions options;
        options.kv_cache_dtype = kv;
        INFO("heads of " << head_dim << ", " << num_kv_heads << " KV heads, " << name(kv));
        check_all_known(model_of(head_dim, num_kv_heads, Dtype::f16), options, 4);
      }
}

TEST_CASE("the kernels of critical blocks are in the table of compiled kernels for AMD", "[compiled_kernels]") {
  for (const int num_kv_heads : {1, 4, 8, 16, 32})
    for (const Dtype kv : {Dtype::f16, Dtype::bf16, Dtype::fp8_e4m3, Dtype::fp8_e5m2}) {
      EngineOptions options;
      options.kv_cache_dtype = kv;
      options.kv_retention = {.policy = RetentionPolicy::critical_blocks, .kv_budget = 0.25};
      int found = 0;
      for_ops(model_of(128, num_kv_heads, Dtype::f16), options, 4, [&](const Op& op, const StepPlan& /*plan*/) {
        if (op.kind != OpKind::update_block_bounds && op.kind != OpKind::choose_critical_blocks) return;
        for (const char* target : {"gfx906", "gfx908", "gfx90a"}) {
          INFO(target << ", " << op.name << ", " << num_kv_heads << " KV heads, " << name(kv));
          CHECK(compiled_resources(target, kernel_of(op, 64, 1)).has_value());
        }
        ++found;
      });
      CHECK(found == 6);  // two of decodes, one of prefills, for both ways to split
    }
}

TEST_CASE("the kernel of every op is in the table of compiled kernels: rows and weights", "[compiled_kernels]") {
  for (const int m : {1, 2, 3, 4, 5, 8, 9, 32, 33, 64, 65, 128, 129, 1000, 4096})
    for (const Dtype dtype : {Dtype::f16, Dtype::bf16, Dtype::f32})
      for (const Dtype activation : {Dtype::f16, Dtype::f32})
        for (const WeightFormat weights :
             {WeightFormat{dtype, 0}, {Dtype::fp8_e4m3, 0}, {Dtype::int4, 128}, {Dtype::int8, 0}}) {
          EngineOptions options;
          options.weights = weights;
          options.activation_dtype = activation;
          INFO(name(weights.dtype) << " weights, " << name(activation) << " activations");
          check_all_known(model_of(128, 8, dtype), options, m);
        }
}

TEST_CASE("the kernel of every op is in the table of compiled kernels: other families, int8 with 8-bit activations",
          "[compiled_kernels]") {
  for (const Dtype kv : {Dtype::f16, Dtype::bf16, Dtype::fp8_e4m3, Dtype::fp8_e5m2}) {
    EngineOptions options;
    options.kv_cache_dtype = kv;
    ModelShape bloom = model_of(128, 32, Dtype::f16);
    bloom.norm = NormKind::layer_norm;
    bloom.kinds[0].gqa().position.kind = PositionKind::alibi;
    bloom.kinds[0].mlp.kind = MlpKind::plain;
    bloom.kinds[0].mlp.activation = ActivationKind::gelu_tanh;
    check_all_known(bloom, options, 4);
  }
  for (const int m : {1, 9, 100}) {
    EngineOptions options;
    options.weights = {Dtype::int8, -1};
    options.activations = ActivationMode::int8;
    check_all_known(model_of(128, 8, Dtype::f16), options, m);
  }
}

TEST_CASE("the kernel of every op is in the table of compiled kernels: mixtures of experts", "[compiled_kernels]") {
  ModelShape model = model_of(128, 8, Dtype::f16);
  model.kinds[0].experts = Experts{.num_experts = 64, .num_experts_per_tok = 6, .intermediate_size = 1408};
  for (const int m : {1, 8, 16, 40, 100, 300, 1000, 4096})
    for (const Dtype dtype : {Dtype::f16, Dtype::bf16, Dtype::f32})
      for (const WeightFormat weights : {WeightFormat{dtype, 0}, {Dtype::fp8_e4m3, 0}, {Dtype::int4, 128}}) {
        EngineOptions options;
        options.weights = weights;
        options.activation_dtype = dtype == Dtype::bf16 ? Dtype::f32 : Dtype::f16;
        model.dtype = dtype;
        INFO(name(weights.dtype) << " weights, " << name(options.activation_dtype) << " activations");
        check_all_known(model, options, m);
      }
}

TEST_CASE("the kernel of every op is in the table of compiled kernels: latents", "[compiled_kernels]") {
  ModelShape model = model_of(128, 8, Dtype::f16);
  model.kinds[0].attention = Mla{.num_attention_heads = 128,
                                 .q_lora_rank = 1536,
                                 .kv_lora_rank = 512,
                                 .qk_nope_head_dim = 128,
                                 .qk_rope_head_dim = 64,
                                 .v_head_dim = 128};
  for (const Dtype kv : {Dtype::f16, Dtype::bf16, Dtype::fp8_e4m3, Dtype::fp8_e5m2})
    for (const Dtype weights : {Dtype::f16, Dtype::bf16, Dtype::f32, Dtype::fp8_e4m3})
      for (const LatentForm form : {LatentForm::expand, LatentForm::absorb})
        for (const int m : {1, 2, 3, 9, 300}) {
          EngineOptions options;
          options.kv_cache_dtype = kv;
          options.weights = {weights, 0};
          options.activation_dtype = kv == Dtype::bf16 ? Dtype::f32 : Dtype::f16;
          options.prefill_latents = options.decode_latents = form;
          INFO(name(kv) << " cache, " << name(weights) << " weights");
          check_all_known(model, options, m);
        }
}

TEST_CASE("a kernel's name is read as the kernel that has it", "[compiled_kernels]") {
  int run_ops = 0;
  for (const CompiledKernel& kernel : compiled_kernels()) {
    const auto id = parse_kernel(kernel.name);
    if (!id) continue;  // one that no op is run by alone
    CHECK(name(*id) == kernel.name);
    ++run_ops;
  }
  CHECK(run_ops > 5 * 130);
  for (const char* wrong : {"", "gemv_kernel", "gemv_kernel<64>", "gemv_kernel<64, 8, Half, Half, 1>", "gelu_kernel<x>",
                            "gemm_kernel<32, Halves, Half>", "top_k_kernel<64>"})
    CHECK_FALSE(parse_kernel(wrong).has_value());
}

TEST_CASE("a machine of no target, or of one that nothing is compiled for, has no compiled resources",
          "[compiled_kernels]") {
  const StepPlan plan = plan_step(sim::test::llama_3_8b(), EngineOptions{}, uniform_batch(Phase::decode, 1, 100));
  for (const char* target : {"", "gfx000"}) {
    for (const Op& op : plan.ops) CHECK_FALSE(compiled_resources(target, kernel_of(op, kWaveSize, 1)).has_value());
  }
}

}  // namespace dculab::lower::dculab_gpu::test
