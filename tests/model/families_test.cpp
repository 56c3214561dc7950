// The configurations of published models: the parameters that transformers counts, and the KV bytes of their formulas.
#include <cmath>
#include <fstream>
#include <sstream>

#include "core/error.hpp"
#include "model/kv/kv_bytes.hpp"
#include "model/model_config.hpp"
#include "tests/support/catch.hpp"

using namespace dculab;

namespace {

[[nodiscard]] ModelShape shipped(const std::string& name) {
  const std::string file = DCULAB_SOURCE_DIR "/scenarios/models/" + name + "/config.json";
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return parse_model_shape(text.str(), file, name);
}

[[nodiscard]] double parameters(ModelShape model) {
  model.dtype = Dtype::f32, model.quantization.reset();
  return weight_footprint(model, {Dtype::f32, 0}) / storage(Dtype::f32, 1);
}

struct Published {
  const char* name;
  double parameters;    // transformers 5.23: from_config() on the meta device, tied weights once
  double kv_per_token;  // values: of layers with attention, 2 * layers * KV heads * head size; latents and entries
};

constexpr Published kPublished[] = {
    {"llama-3.1-405b", 405853388800, 2.0 * 126 * 8 * 128},
    {"qwen3-0.6b", 596049920, 2.0 * 28 * 8 * 128},
    {"qwen3-1.7b", 1720574976, 2.0 * 28 * 8 * 128},
    {"qwen3-4b", 4022468096, 2.0 * 36 * 8 * 128},
    {"qwen3-8b", 8190735360, 2.0 * 36 * 8 * 128},
    {"qwen3-14b", 14768307200, 2.0 * 40 * 8 * 128},
    {"qwen3-32b", 32762123264, 2.0 * 64 * 8 * 128},
    {"qwen3-32b-fp8", 32762123264, 2.0 * 64 * 8 * 128},
    {"gemma-2-9b-it", 9241705984, 2.0 * 42 * 8 * 256},
    {"gemma-2-27b-it", 27227128320, 2.0 * 46 * 16 * 128},
    {"gemma-3-1b-it", 999885952, 2.0 * 26 * 1 * 256},
    {"gemma-3-27b-it", 27009346304, 2.0 * 62 * 16 * 128},
    {"phi-3-mini-4k-instruct", 3821079552, 2.0 * 32 * 32 * 96},
    {"phi-4", 14659507200, 2.0 * 40 * 10 * 128},
    {"phi-4-mini-instruct", 3836021760, 2.0 * 32 * 8 * 128},
    {"glm-4-9b-0414", 9400279040, 2.0 * 40 * 2 * 128},
    {"olmo-2-7b-instruct", 7298617344, 2.0 * 32 * 32 * 128},
    {"mixtral-8x7b", 46702792704, 2.0 * 32 * 8 * 128},
    {"mixtral-8x22b", 140620634112, 2.0 * 56 * 8 * 128},
    {"qwen3-30b-a3b", 30532122624, 2.0 * 48 * 4 * 128},
    {"qwen3-235b-a22b", 235093634560, 2.0 * 94 * 4 * 128},
    {"gpt-oss-20b", 20914757184, 2.0 * 24 * 8 * 64},
    {"gpt-oss-120b", 116829156672, 2.0 * 36 * 8 * 64},
    {"llama-4-scout", 107769861120, 2.0 * 48 * 8 * 128},
    {"qwen3-next-80b-a3b", 79674391296, 2.0 * 12 * 2 * 256},
    {"qwen3.5-27b", 26895998464, 2.0 * 16 * 4 * 256},
    {"qwen3.6-35b-a3b", 34660610688, 2.0 * 10 * 2 * 256},
    // Transformers counts no biases of routers; the Hub, whose count of Kimi K2 this is, does.
    {"glm-4.5-air", 106852245504 + 45 * 128, 2.0 * 46 * 8 * 128},
    {"minimax-m2.7", 228689748992 + 62 * 256, 2.0 * 62 * 8 * 128},
    // A latent and a rotated key a layer: 70,272 bytes a token in BF16.
    {"deepseek-v3", 671026404352 + 58 * 256, 61 * (512 + 64)},
    {"deepseek-v2-lite", 15706484224, 27 * (512 + 64)},
    {"kimi-k2-instruct", 1026408232448, 61 * (512 + 64)},
    // Larger heads in the layers without a window, fewer of them for K and V.
    {"gemma-4-26b-a4b", 25233141760, 2.0 * (25 * 8 * 256 + 5 * 2 * 512)},
    {"gemma-4-31b", 30697345280, 2.0 * (50 * 16 * 256 + 10 * 4 * 512)},
    // Of entries of 4 tokens a key and the indexer's, of 128 tokens a key. Without
    // biases of routers, which layers have that choose experts by score.
    {"deepseek-v4-flash", 284332230231 + 40 * 256, 21 * (512 + 128) / 4.0 + 20 * 512 / 128.0},
    {"deepseek-v4-pro", 1572997179491 + 58 * 384, 30 * (512 + 128) / 4.0 + 31 * 512 / 128.0}};

}  // namespace

TEST_CASE("published models have the parameters and the KV cache that they have", "[families]") {
  for (const Published& published : kPublished) {
    INFO(published.name);
    const ModelShape model = shipped(published.name);
    CHECK(parameters(model) == published.parameters);
    CHECK(kv_bytes_per_token(model, Dtype::bf16).value() == 2 * published.kv_per_token);
  }
}

// Their model.safetensors.index.json, `total_size`.
TEST_CASE("quantized checkpoints take the bytes that they take on the Hub", "[families]") {
  const auto bytes = [](const char* name) {
    const ModelShape model = shipped(name);
    return weight_footprint(model, model.layer_format()).value();
  };
  CHECK(bytes("gpt-oss-20b") == Approx(13761264768.0).epsilon(1e-4));
  CHECK(bytes("gpt-oss-120b") == Approx(65248815744.0).epsilon(1e-4));
}

TEST_CASE("devices share whole groups of MXFP4 weights, and experts of 16 bits by their width", "[families]") {
  const ModelShape model = shipped("gpt-oss-20b");
  const auto width = [&](WeightFormat layers, int devices) {
    CHECK(shard_problems(model, layers, devices).empty());
    return shard(model, layers, devices).kinds[0].experts->intermediate_size;
  };
  CHECK(width(model.layer_format(), 2) == 1440);     // 45 of 90 groups of 32
  CHECK(width(model.layer_format(), 4) == 23 * 32);  // the last device has 21 groups
  CHECK(width(model.layer_format(), 8) == 12 * 32);
  CHECK(width({Dtype::bf16, 0}, 4) == 720);
  const auto refused = shard_problems(model, model.layer_format(), 16);  // 15 devices have 6 groups each
  REQUIRE(refused.size() == 1);
  CHECK_THAT(refused.front(), ContainsSubstring("90 groups of experts in mxfp4 leave some of 16 devices without any"));
  ModelShape narrow = model;
  for (LayerKind& kind : narrow.kinds) kind.experts->intermediate_size = 24;
  CHECK(shard(narrow, model.layer_format(), 1).kinds[0].experts->intermediate_size == 24);
  CHECK_THAT(shard_problems(narrow, model.layer_format(), 2).front(),
             ContainsSubstring("do not make whole groups of 32"));
}

TEST_CASE("Gemma's windows are in its layers' kinds, and their frequencies too", "[families]") {
  const ModelShape gemma2 = shipped("gemma-2-9b-it");
  REQUIRE(gemma2.kinds.size() == 2);
  CHECK(gemma2.num_layers(0) == 21);
  CHECK(gemma2.layer(0).gqa().sliding_window == 4096);
  CHECK(gemma2.layer(1).gqa().sliding_window == 0);
  CHECK(gemma2.layer(0).gqa().logit_soft_cap == 50);
  CHECK(gemma2.final_logit_soft_cap == 30);
  const ModelShape gemma3 = shipped("gemma-3-27b-it");
  REQUIRE(gemma3.kinds.size() == 2);
  CHECK(gemma3.num_layers(1) == 10);
  CHECK(gemma3.layer(5).gqa().sliding_window == 0);
  CHECK(gemma3.layer(5).gqa().position.rope_theta == 1e6);
  CHECK(gemma3.layer(5).gqa().position.rope_scaling.factor == 8);
  CHECK(gemma3.layer(0).gqa().sliding_window == 1024);
  CHECK(gemma3.layer(0).gqa().position.rope_theta == 1e4);
  CHECK(gemma3.layer(0).gqa().position.rope_scaling.kind == RopeScalingKind::none);
  CHECK(gemma3.dtype == Dtype::bf16);
}

TEST_CASE("weights quantized to FP8 and by compressed-tensors are predicted as they are stored", "[families]") {
  CHECK(shipped("qwen3-32b-fp8").quantization == WeightFormat{Dtype::fp8_e4m3, 0});
  CHECK(shipped("qwen3-32b-fp8").quantized_activations == ActivationMode::fp8);
  const auto read = [](const std::string& weights) {
    return parse_model_shape(R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 128,
      "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100, "torch_dtype": "bfloat16",
      "quantization_config": {"quant_method": "compressed-tensors", "config_groups": {"group_0": {
        "targets": ["Linear"], "weights": )" +
                                 weights + "}}}}",
                             "config.json", "small");
  };
  const auto stored = [&read](const std::string& weights) { return read(weights).quantization; };
  const auto activations = [&read](const std::string& inputs) {
    return read(R"({"num_bits": 8, "type": "int"}, "input_activations": )" + inputs).quantized_activations;
  };
  CHECK(stored(R"({"num_bits": 8, "type": "float"})") == WeightFormat{Dtype::fp8_e4m3, 0});
  CHECK(stored(R"({"num_bits": 4, "type": "int", "group_size": 32})") == WeightFormat{Dtype::int4, 32});
  CHECK(stored(R"({"num_bits": 8, "type": "int", "group_size": null})") == WeightFormat{Dtype::int8, -1});
  CHECK_THROWS_WITH(stored(R"({"num_bits": 3, "type": "int"})"), ContainsSubstring("'num_bits' must be 4 or 8"));
  CHECK(activations("null") == ActivationMode::exact);
  CHECK(activations(R"({"num_bits": 8, "type": "int"})") == ActivationMode::int8);
  CHECK(activations(R"({"num_bits": 8, "type": "float"})") == ActivationMode::fp8);
  CHECK_THROWS_WITH(activations(R"({"num_bits": 4, "type": "int"})"), ContainsSubstring("must be 8 for activations"));
  CHECK_THROWS_WITH(activations(R"({"num_bits": 8, "type": "weird"})"), ContainsSubstring("'weird' is not supported"));
}

TEST_CASE("YaRN and LongRoPE say how they scale, and what is wrong with them", "[families]") {
  const auto read = [](const std::string& rope) {
    return parse_model_shape(R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 128,
      "num_hidden_layers": 2, "num_attention_heads": 16, "vocab_size": 100, "max_position_embeddings": 4096,
      "rope_scaling": )" + rope + "}",
                             "config.json", "small")
        .kinds[0]
        .gqa()
        .position.rope_scaling;
  };
  const RopeScaling yarn = read(R"({"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 1024})");
  CHECK(yarn.kind == RopeScalingKind::yarn);
  CHECK(yarn.attention_factor == Approx(0.1 * std::log(4.0) + 1));
  const RopeScaling same = read(
      R"({"type": "yarn", "factor": 40, "mscale": 0.707, "mscale_all_dim": 0.707, "original_max_position_embeddings": 8})");
  CHECK(same.attention_factor == 1.0);
  CHECK_THROWS_WITH(read(R"({"type": "yarn", "factor": 4.0})"), ContainsSubstring("original_max_position_embeddings"));
  const RopeScaling longrope = read(
      R"({"type": "su", "short_factor": [1, 1.5], "long_factor": [2, 3.5], "original_max_position_embeddings": 1024})");
  CHECK(longrope.kind == RopeScalingKind::longrope);
  CHECK(longrope.short_factor == std::vector{1.0, 1.5});
  CHECK(longrope.attention_factor == Approx(std::sqrt(1 + std::log(4.0) / std::log(1024.0))));
  CHECK_THROWS_WITH(
      read(R"({"type": "su", "short_factor": [1, 1], "long_factor": [2], "original_max_position_embeddings": 1024})"),
      ContainsSubstring("as many entries as short_factor"));
  // Within max_position_embeddings, where all contexts lie, dynamic scaling changes nothing; an alpha does.
  CHECK(read(R"({"type": "dynamic", "factor": 2.0})").kind == RopeScalingKind::none);
  CHECK_THROWS_WITH(read(R"({"type": "dynamic", "alpha": 1000.0, "factor": 1.0})"),
                    ContainsSubstring("'dynamic' is not a supported"));
}

namespace {

// A small model of a family with other fields.
[[nodiscard]] ModelShape small_family(const std::string& type, const std::string& fields) {
  return parse_model_shape(R"({"model_type": ")" + type +
                               R"(", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
    "num_attention_heads": 4, "head_dim": 16, "vocab_size": 100)" +
                               fields + "}",
                           "config.json", "small");
}

TEST_CASE("the models that compare kinds of attention have one budget of parameters") {
  const double budget = parameters(shipped("attention-8b-gqa8"));
  for (const char* kind : {"mha", "mqa", "mla", "cla2"}) {
    INFO(kind);
    CHECK(std::abs(parameters(shipped(std::string("attention-8b-") + kind)) / budget - 1) < 0.003);
  }
}

}  // namespace

TEST_CASE("what a family does not know is refused, not taken for something else", "[families]") {
  const auto refusal = [](const std::string& type, const std::string& fields) -> std::string {
    try {
      (void)small_family(type, fields);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  CHECK_THAT(refusal("gemma2", R"(, "layer_types": ["chunked_attention", "full_attention"])"),
             ContainsSubstring("'chunked_attention'"));
  CHECK_THAT(refusal("qwen3", R"(, "layer_types": ["full_attention"])"),
             ContainsSubstring("has 1 entries for 2 layers"));
  CHECK_THAT(refusal("gemma3_text", R"(, "use_bidirectional_attention": true)"), ContainsSubstring("bidirectional"));
  CHECK_THAT(refusal("gemma3_text", R"(, "rope_parameters": {"rope_theta": 1e6})"),
             ContainsSubstring("a set for each type of layer"));
  CHECK_THAT(refusal("qwen3", R"(, "rope_parameters": {"full_attention": {"rope_theta": 1e6}})"),
             ContainsSubstring("which this family has not"));
  CHECK_THAT(refusal("gemma2", R"(, "attn_logit_softcapping": 1e-60)"), ContainsSubstring("must be positive"));
  CHECK_THAT(refusal("glm4", R"(, "partial_rotary_factor": 0.001)"), ContainsSubstring("2 values to rotate"));
  for (const char* bad : {R"("beta_fast": -1)", R"("attention_factor": 0)", R"("mscale": -1, "mscale_all_dim": -10)"})
    CHECK_THAT(refusal("llama", std::string(R"(, "rope_scaling": {"type": "yarn", "factor": 4, )") + bad +
                                    R"(, "original_max_position_embeddings": 64})"),
               ContainsSubstring("must be positive"));
  CHECK_THAT(refusal("phi3", R"(, "rope_scaling": {"type": "longrope", "short_factor": [1], "long_factor": [1]})"),
             ContainsSubstring("'original_max_position_embeddings' is missing"));
  CHECK_THAT(refusal("llama", R"(, "quantization_config": {"quant_algo": "FP8"})"), ContainsSubstring("ModelOpt"));
  CHECK_THAT(refusal("llama", R"(, "quantization_config": {"quant_method": "fp8", "modules_to_not_convert":
                                  ["model.layers.0.self_attn.q_proj"]})"),
             ContainsSubstring("several formats"));
}

TEST_CASE("a huge number of layers is refused before there is memory for them", "[families]") {
  for (const char* type : {"llama", "gemma2", "gemma3_text", "qwen2"}) {
    const std::string text = std::string(R"({"model_type": ")") + type +
                             R"(", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 1000000000,
                               "num_attention_heads": 4, "vocab_size": 100})";
    CHECK_THROWS_WITH(parse_model_shape(text, "config.json", "small"),
                      ContainsSubstring("'num_hidden_layers' is out of range"));
  }
}

TEST_CASE("half a head is rotated in GLM-4 unless its configuration says another part", "[families]") {
  CHECK(small_family("glm4", "").kinds[0].gqa().rotary_dim() == 8);
  CHECK(small_family("glm4", R"(, "partial_rotary_factor": 1.0)").kinds[0].gqa().rotary_dim() == 16);
  CHECK(small_family("glm4", R"(, "rope_parameters": {"partial_rotary_factor": 0.25})").kinds[0].gqa().rotary_dim() ==
        4);
}

TEST_CASE("fewer layers than a model has leave no kind without layers", "[families]") {
  const ModelShape gemma = shipped("gemma-3-1b-it");
  REQUIRE(gemma.kinds.size() == 2);
  CHECK(with_layers(gemma, 4).kinds.size() == 1);
  CHECK(with_layers(gemma, 40).num_layers() == 40);
  CHECK(problems(with_layers(gemma, 4)).empty());
}
