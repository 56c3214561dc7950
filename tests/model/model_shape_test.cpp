#include "model/model_shape.hpp"

#include "model/kv/kv_bytes.hpp"
#include "model/plan_step.hpp"
#include "model/shard.hpp"
#include "tests/support/catch.hpp"

using namespace dculab;

namespace {

// `count` layers of the first kind.
std::vector<std::uint8_t> alike(int count) { return std::vector<std::uint8_t>(static_cast<std::size_t>(count)); }

// https://huggingface.co/meta-llama/Meta-Llama-3-8B/blob/main/config.json
ModelShape llama_3_8b() {
  return {.name = "llama-3-8b",
          .hidden_size = 4096,
          .vocab_size = 128256,
          .max_position_embeddings = 8192,
          .dtype = Dtype::bf16,
          .kinds = {{.attention = Gqa{.heads = {32, 8, 128}}, .mlp = {14336}}},
          .layers = alike(32)};
}

// https://huggingface.co/Qwen/Qwen2-7B/blob/main/config.json
ModelShape qwen2_7b() {
  return {.hidden_size = 3584,
          .vocab_size = 152064,
          .max_position_embeddings = 131072,
          .dtype = Dtype::bf16,
          .kinds = {{.attention = Gqa{.heads = {28, 4, 128}, .qkv_bias = true}, .mlp = {18944}}},
          .layers = alike(28)};
}

// https://huggingface.co/bigscience/bloom-7b1/blob/main/config.json
ModelShape bloom_7b1() {
  return {.hidden_size = 4096,
          .vocab_size = 250880,
          .max_position_embeddings = 2048,
          .tie_word_embeddings = true,
          .norm = NormKind::layer_norm,
          .embedding_norm = true,
          .kinds = {{.attention = Gqa{.heads = {32, 32, 128},
                                      .position = {.kind = PositionKind::alibi},
                                      .qkv_bias = true,
                                      .output_bias = true},
                     .mlp = {16384, MlpKind::plain, ActivationKind::gelu_tanh, true}}},
          .layers = alike(30)};
}

// https://huggingface.co/tiiuae/falcon-7b/blob/main/config.json
ModelShape falcon_7b() {
  return {.hidden_size = 4544,
          .vocab_size = 65024,
          .max_position_embeddings = 2048,
          .tie_word_embeddings = true,
          .norm = NormKind::layer_norm,
          .dtype = Dtype::bf16,
          .kinds = {{.attention = Gqa{.heads = {71, 1, 64}},
                     .mlp = {4 * 4544, MlpKind::plain, ActivationKind::gelu},
                     .block = BlockKind::parallel}},
          .layers = alike(32)};
}

// The classic transformer of the lectures: MHA, MLP of width 4D.
ModelShape classic(int hidden, int layers) {
  return {.hidden_size = hidden,
          .vocab_size = 1000,
          .max_position_embeddings = 2048,
          .kinds = {{.attention = Gqa{.heads = {hidden / 64, hidden / 64, 64}}, .mlp = {4 * hidden, MlpKind::plain}}},
          .layers = alike(layers)};
}

double matrix_values(const ModelShape& model) { return layer_matrix_values(model, model.kinds.front()); }

}  // namespace

TEST_CASE("Llama-3-8B has 8,030,261,248 parameters", "[model_shape]") {
  const ModelShape model = llama_3_8b();
  REQUIRE(problems(model).empty());
  REQUIRE(model.heads().group_size() == 4);
  REQUIRE(weight_footprint(model, {.dtype = Dtype::bf16}).value() == 2.0 * 8030261248.0);
}

TEST_CASE("other families have the parameters that are published of them", "[model_shape]") {
  for (const ModelShape& model : {qwen2_7b(), bloom_7b1(), falcon_7b()}) REQUIRE(problems(model).empty());
  REQUIRE(weight_footprint(qwen2_7b(), {.dtype = Dtype::bf16}).value() == 2.0 * 7615616512.0);
  REQUIRE(weight_footprint(bloom_7b1(), {.dtype = Dtype::f16}).value() == 2.0 * 7069016064.0);
  REQUIRE(weight_footprint(falcon_7b(), {.dtype = Dtype::bf16}).value() == 2.0 * 6921720704.0);
}

TEST_CASE("Llama-3-8B leaves 128 KiB of F16 KV per token", "[model_shape]") {
  REQUIRE(kv_bytes_per_token(llama_3_8b(), Dtype::f16) == 128 * kKiB);
  REQUIRE(kv_bytes_per_token(llama_3_8b(), Dtype::fp8_e4m3) == 64 * kKiB);
}

TEST_CASE("a classic layer has 12 D^2 matrix values, 24 D^2 bytes in F16", "[model_shape]") {
  for (const int hidden : {128, 1024, 4096}) {
    const double square = static_cast<double>(hidden) * hidden;
    REQUIRE(matrix_values(classic(hidden, 2)) == 12.0 * square);
    REQUIRE(storage(Dtype::f16, matrix_values(classic(hidden, 2))).value() == 24.0 * square);
  }
}

TEST_CASE("fewer KV heads shrink the KV cache in proportion and keep the group a divisor", "[model_shape]") {
  const ModelShape full = with_kv_heads(llama_3_8b(), 32);
  for (const int heads : {1, 2, 4, 8, 16, 32}) {
    const ModelShape grouped = with_kv_heads(full, heads);
    REQUIRE(grouped.heads().group_size() == 32 / heads);
    REQUIRE(kv_bytes_per_token(grouped, Dtype::f16) * 32 == kv_bytes_per_token(full, Dtype::f16) * heads);
    REQUIRE(problems(grouped).empty());
  }
}

TEST_CASE("a tied head is counted once", "[model_shape]") {
  ModelShape tied = llama_3_8b();
  tied.tie_word_embeddings = true;
  const Bytes saved = weight_footprint(llama_3_8b(), {}) - weight_footprint(tied, {});
  REQUIRE(saved == storage(Dtype::bf16, 128256.0 * 4096.0));
}

TEST_CASE("every missing size is named at once", "[model_shape]") { REQUIRE(problems(ModelShape{}).size() == 8); }

TEST_CASE("heads that do not divide and odd head sizes are named", "[model_shape]") {
  ModelShape model = with_kv_heads(llama_3_8b(), 5);
  model.kinds[0].gqa().heads.head_dim = 127;
  const auto found = problems(model);
  REQUIRE(found.size() == 2);
  REQUIRE_THAT(found[0], ContainsSubstring("num_attention_heads (32) is not a multiple of num_key_value_heads (5)"));
  REQUIRE_THAT(found[1], ContainsSubstring("head_dim must be even"));
}

TEST_CASE("sizes beyond any model, and widths that an int could not hold, are named with their bounds",
          "[model_shape]") {
  ModelShape model = llama_3_8b();
  model.vocab_size = kLargestModelField;
  model.layers.assign(kMostLayers, 0);
  CHECK(problems(model).empty());
  model.vocab_size = kLargestModelField + 1;
  model.layers.assign(kMostLayers + 1, 0);
  CHECK(problems(model) == std::vector<std::string>{"vocab_size must be at most 16777216, not 16777217",
                                                    "num_hidden_layers must be at most 10000, not 10001"});
  model = llama_3_8b();
  model.kinds[0].gqa().heads.num_attention_heads = 1 << 20;
  CHECK(problems(model) ==
        std::vector<std::string>{"num_attention_heads * head_dim must be at most 16777216, not 134217728"});
}

TEST_CASE("a shard is the model divided by the devices") {
  const ModelShape model = llama_3_8b();
  const ModelShape part = shard(model, {}, 8);
  CHECK(part.kinds[0].gqa().heads.num_attention_heads == 4);
  CHECK(part.kinds[0].gqa().heads.num_key_value_heads == 1);
  CHECK(part.tensor_parallel_size == 8);
  CHECK(8 * matrix_values(part) == matrix_values(model));
  CHECK(shard(model, {}, 16).heads().num_key_value_heads == 1);  // replicated
  CHECK(shard(model, {}, 1) == model);
  CHECK(shard_problems(model, {}, 3).size() == 3);  // 32 / 3, 8 / 3, 14336 / 3
  const WeightFormat grouped{Dtype::int4, 128};
  CHECK(shard_problems(model, grouped, 4).empty());
  ModelShape uneven = model;
  uneven.kinds[0].mlp.intermediate_size = 11008;
  REQUIRE(shard_problems(uneven, grouped, 4).size() == 1);
  CHECK_THAT(shard_problems(uneven, grouped, 4).front(), ContainsSubstring("down_proj has 2752 in-features on each"));
}

TEST_CASE("a model says why its layers cannot take activations so") {
  ModelShape model = llama_3_8b();
  model.dtype = Dtype::bf16;
  CHECK(problem(ActivationMode::exact, model).empty());
  CHECK(problem(ActivationMode::bf16, model).empty());
  CHECK(problem(ActivationMode::int8, model) ==
        "needs quantized weights, and those of llama-3-8b are bf16; quantize the model first");
  model.kinds[0].mlp.intermediate_size = 81;
  CHECK(problem(ActivationMode::bf16, model) ==
        "needs an even hidden_size and intermediate_size, which llama-3-8b has not; use exact");
  model.kinds[0].mlp.intermediate_size = 80;
  model.dtype = Dtype::f16;
  CHECK(problem(ActivationMode::bf16, model) == "needs BF16 weights, and those of llama-3-8b are f16; use exact");
  model.quantization = WeightFormat{Dtype::int8, -1};
  CHECK(problem(ActivationMode::int8, model).empty());
  CHECK_FALSE(problem(ActivationMode::bf16, model).empty());
}
