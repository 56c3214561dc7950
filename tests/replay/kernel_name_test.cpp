// Does the simulator name the kernel that the engine really launches for an op?
#include "engine/recording/op_recorder.hpp"
#include "lower/dculab_gpu/kernel_id.hpp"
#include "model/plan_step.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/retention_policies.hpp"

namespace dculab {
namespace {

using lower::dculab_gpu::kernel_of;

ModelShape small_model(int head_dim, int kv_heads) {
  ModelShape model;
  model.layers.assign(1, 0);
  model.kinds[0].gqa().heads = {4, kv_heads, head_dim};
  model.hidden_size = model.kinds[0].mlp.intermediate_size = 128;
  model.vocab_size = 256;
  model.max_position_embeddings = 512;
  model.dtype = Dtype::f16;
  return model;
}

void check_names(const ModelShape& model, const EngineOptions& options, const Batch& batch) {
  for (const Op& op : plan_step(model, options, batch).ops)
    for (const int wave_size : {64, 32}) {
      CAPTURE(op.name, op.m, wave_size, name(op.weight_format.dtype), name(options.kv_cache_dtype));
      const engine::RecordedOp recorded = engine::record_op(model, options, batch, op.name, wave_size);
      CHECK(recorded.launches.front().kernel == name(kernel_of(recorded.op(), wave_size, model.heads().group_size())));
    }
}

}  // namespace

TEST_CASE("the simulator names the kernels that a small decode launches", "[recording]") {
  EngineOptions options;
  options.weights = {Dtype::f16, 0};
  check_names(small_model(32, 2), options, uniform_batch(Phase::decode, 3, 3));
}

TEST_CASE("the simulator names the kernels that are launched", "[recording][once]") {
  EngineOptions options;
  options.weights = {Dtype::f16, 0};

  SECTION("for each format of the weights and number of rows") {
    options.weights.dtype = GENERATE(Dtype::f16, Dtype::bf16, Dtype::int4, Dtype::int8);
    if (options.weights.dtype == Dtype::int4) options.weights.group_size = 64;
    const int batch = GENERATE(1, 3, 8, 9, 33, 65, 130);
    check_names(small_model(32, 2), options, uniform_batch(Phase::decode, batch, 3));
  }
  SECTION("for policies of the KV cache") {
    options.kv_cache_dtype = GENERATE(Dtype::f16, Dtype::fp8_e4m3, Dtype::int8);
    const KvRetention sinks{.policy = RetentionPolicy::sinks, .sink_tokens = 3, .window_tokens = 8};
    const KvRetention hitters{
        .policy = RetentionPolicy::heavy_hitters, .window_tokens = 8, .heavy_hitter_tokens = GENERATE(20, 5000)};
    for (const KvRetention& retention : {sinks, hitters}) {
      options.kv_retention = retention;
      const int context = static_cast<int>(kv_capacity(retention, options.block_size)) + 1;
      ModelShape model = small_model(32, 2);
      model.max_position_embeddings = 8192;
      check_names(model, options, uniform_batch(Phase::decode, 2, context, retention, options.block_size));
    }
  }
  SECTION("for KIVI caches") {
    options.kv_cache_dtype = GENERATE(Dtype::kivi4, Dtype::kivi2);
    options.activation_dtype = GENERATE(Dtype::f16, Dtype::f32);
    ModelShape model = small_model(GENERATE(32, 96, 256), GENERATE(1, 2, 4));
    check_names(model, options, uniform_batch(Phase::decode, 2, 150));
    check_names(model, options, uniform_batch(Phase::prefill, 1, 40));
    model.kinds[0].gqa().position.kind = PositionKind::alibi;
    check_names(model, options, uniform_batch(Phase::decode, 2, 160));  // completes a group
  }
  SECTION("for critical blocks") {
    options.kv_cache_dtype = GENERATE(Dtype::f16, Dtype::bf16, Dtype::fp8_e5m2);
    options.kv_retention = critical(0.3);
    options.block_size = 4;
    const ModelShape model = small_model(GENERATE(64, 80), GENERATE(1, 2, 4));
    check_names(model, options, uniform_batch(Phase::decode, 2, 50));
    check_names(model, options, uniform_batch(Phase::prefill, 1, 9));
  }
  SECTION("for int8 weights with 8-bit activations") {
    options.weights = {Dtype::int8, -1};
    options.activations = ActivationMode::int8;
    check_names(small_model(32, 2), options, uniform_batch(Phase::decode, GENERATE(1, 9), 3));
  }
  SECTION("for layers of other kinds") {
    options.kv_cache_dtype = GENERATE(Dtype::f16, Dtype::bf16);
    ModelShape bloom = small_model(32, 4);
    bloom.norm = NormKind::layer_norm;
    bloom.embedding_norm = true;
    bloom.kinds[0].gqa().position.kind = PositionKind::alibi;
    bloom.kinds[0].mlp.kind = MlpKind::plain;
    bloom.kinds[0].mlp.activation = ActivationKind::gelu_tanh;
    bloom.kinds[0].gqa().qkv_bias = bloom.kinds[0].gqa().output_bias = bloom.kinds[0].mlp.bias = true;
    ModelShape falcon = bloom;
    falcon.kinds[0].gqa().heads.num_key_value_heads = 1;
    falcon.kinds[0].gqa().position.kind = PositionKind::rope;
    falcon.embedding_norm = false;
    falcon.kinds[0].block = GENERATE(BlockKind::parallel, BlockKind::parallel_two_norms);
    ModelShape mistral = small_model(32, 2);
    mistral.kinds[0].gqa().sliding_window = 3;
    for (const ModelShape& model : {bloom, falcon, mistral}) {
      check_names(model, options, uniform_batch(Phase::decode, 2, 5));
      check_names(model, options, uniform_batch(Phase::prefill, 1, 5));
    }
  }
  SECTION("for each format of the cache, head size and group") {
    options.kv_cache_dtype = GENERATE(Dtype::f16, Dtype::bf16, Dtype::fp8_e4m3, Dtype::fp8_e5m2, Dtype::int8);
    options.activation_dtype = GENERATE(Dtype::f16, Dtype::f32);
    const ModelShape model = small_model(GENERATE(64, 80, 128), GENERATE(1, 2, 4));
    check_names(model, options, uniform_batch(Phase::decode, 1, 5));
    check_names(model, options, uniform_batch(Phase::prefill, 1, 5));
  }
}

}  // namespace dculab
