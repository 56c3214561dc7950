// What quantization_config says that the matrices are stored in, and the bytes that follow.
#include "model/stored_weights.hpp"

#include <string>

#include "core/error.hpp"
#include "model/model_config.hpp"
#include "model/plan_step.hpp"
#include "tests/support/catch.hpp"

using namespace dculab;

namespace {

constexpr const char* kDense = R"({"model_type": "llama", "hidden_size": 128, "intermediate_size": 256,
  "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100, "torch_dtype": "bfloat16")";
constexpr const char* kMixture = R"({"model_type": "mixtral", "hidden_size": 128, "intermediate_size": 256,
  "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4, "num_local_experts": 8,
  "num_experts_per_tok": 2, "vocab_size": 100, "torch_dtype": "bfloat16")";

[[nodiscard]] ModelShape read_quantized(const std::string& model, const std::string& quantization) {
  return parse_model_shape(model + R"(, "quantization_config": {)" + quantization + "}}", "config.json", "small");
}

[[nodiscard]] std::string refusal(const std::string& model, const std::string& quantization) {
  try {
    (void)read_quantized(model, quantization);
  } catch (const InputError& error) {
    return error.what();
  }
  return "none";
}

[[nodiscard]] double footprint(const ModelShape& model) {
  return weight_footprint(model, model.layer_format()).value();
}

// Values of the small models above.
constexpr double kAttention = 4.0 * 128 * 128, kMlp = 3.0 * 128 * 256, kEmbedding = 100.0 * 128;
constexpr double kNorms = 2 * 2 * 128 + 128;                // both layers and the last
constexpr double kOutside = 2 * (2 * kEmbedding + kNorms);  // bytes of embedding, head and norms

}  // namespace

TEST_CASE("mxfp4 quantizes the experts alone, to 4.25 bits a weight", "[families]") {
  const ModelShape model =
      read_quantized(kMixture, R"("quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn",
                        "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"])");
  CHECK(model.layer_format() == WeightFormat{Dtype::mxfp4, 32, ScaleFormat::e8m0});
  CHECK((model.plain.attention && !model.plain.experts && !model.quantized_lm_head));
  const double routers = 2.0 * 8 * 128;
  CHECK(footprint(model) == 2 * (2 * kAttention + 8 * kMlp * 4.25 / 8) + 2 * routers + kOutside);
  EngineOptions options;
  options.weights = model.layer_format();
  for (const Op& op : plan_step(model, options, uniform_batch(Phase::decode, 1, 16)).ops)
    if (op.kind == OpKind::matmul) {
      INFO(op.name);
      CHECK(op.weight_format.dtype == (op.groups.count > 0 ? Dtype::mxfp4 : Dtype::bf16));
    }
  CHECK_THAT(refusal(kDense, R"("quant_method": "mxfp4")"), ContainsSubstring("there are no experts"));
  CHECK_THAT(refusal(kMixture, R"("quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.mlp.experts"])"),
             ContainsSubstring("names the experts"));
}

TEST_CASE("bitsandbytes stores 4.5 bits a weight, 4.127 with double quantization, or 8 and an F32 a row",
          "[families]") {
  const auto bytes = [](double bits) { return 2 * (kAttention + kMlp) * bits / 8; };
  const std::string method = R"("quant_method": "bitsandbytes", )";
  const ModelShape nf4 = read_quantized(kDense, method + R"("load_in_4bit": true, "bnb_4bit_quant_type": "nf4")");
  CHECK(nf4.layer_format() == WeightFormat{Dtype::nf4, 64, ScaleFormat::f32});
  CHECK(footprint(nf4) == bytes(4.5) + kOutside);
  const ModelShape twice = read_quantized(kDense, method + R"("_load_in_4bit": true, "bnb_4bit_use_double_quant": true,
                                                   "llm_int8_skip_modules": null)");
  CHECK(twice.layer_format() == WeightFormat{Dtype::fp4, 64, ScaleFormat::f32_of_bytes});
  CHECK_THAT(footprint(twice), WithinRel(bytes(4 + 0.125 + 32.0 / (64 * 256)) + kOutside, 1e-12));
  CHECK_FALSE(twice.quantized_lm_head);
  const ModelShape int8 = read_quantized(kDense, method + R"("load_in_8bit": true)");
  CHECK(int8.layer_format() == WeightFormat{Dtype::int8, -1, ScaleFormat::f32});
  const double rows = 2 * (4 * 128 + 2 * 256 + 128);
  CHECK(footprint(int8) == bytes(8) + 4 * rows + kOutside);
  CHECK_THAT(refusal(kDense, method + R"("load_in_4bit": false)"), ContainsSubstring("load_in_4bit or load_in_8bit"));
  CHECK_THAT(refusal(kDense, method + R"("load_in_4bit": true, "bnb_4bit_quant_type": "int4")"),
             ContainsSubstring("'int4' is not supported (nf4, fp4)"));
}

TEST_CASE("a list of modules to skip says of bitsandbytes what stays as it is, the head too", "[families]") {
  const auto skipping = [](const std::string& list) {
    return read_quantized(kDense,
                          R"("quant_method": "bitsandbytes", "load_in_4bit": true, "llm_int8_skip_modules": )" + list);
  };
  CHECK(skipping("[]").quantized_lm_head);
  const ModelShape model = skipping(R"(["lm_head", "self_attn", "vision_tower.proj"])");
  CHECK_FALSE(model.quantized_lm_head);
  CHECK((model.plain.attention && !model.plain.mlp));
  CHECK(footprint(model) == 2 * (2 * kAttention + kMlp * 4.5 / 8) + kOutside);
}

TEST_CASE("exceptions name parts of the layers by globs, expressions or modules", "[families]") {
  const auto ignoring = [](const char* name) {
    return read_quantized(
               kMixture,
               R"("quant_method": "compressed-tensors", "config_groups": {"group_0": {"targets": ["Linear"], "weights":
                  {"num_bits": 4, "type": "int", "group_size": 32}}}, "ignore": ["lm_head", ")" +
                   std::string(name) + "\"]")
        .plain;
  };
  CHECK(ignoring("re:.*self_attn.*") == PlainParts{.attention = true});
  CHECK(ignoring("model.layers.*.self_attn*") == PlainParts{.attention = true});
  CHECK(ignoring(R"(re:.*mlp\\.(gate|up|gate_up|down)_proj.*)") == PlainParts{.mlp = true});
  CHECK(ignoring("re:.*shared_experts.*") == PlainParts{.shared_experts = true});
  CHECK(ignoring("mlp") == PlainParts{.mlp = true, .shared_experts = true, .experts = true});
  for (const char* small : {"model.layers.0.block_sparse_moe.gate", "model.layers.3.input_layernorm", "model.norm",
                            "model.layers.7.self_attn.indexers_proj", "model.layers.78.eh_proj",
                            "model.layers.0.linear_attn.in_proj_ba", "re:.*vision_tower.*", "re:.*mlp.gate$"})
    CHECK(ignoring(small) == PlainParts{});
  for (const char* one : {"model.layers.0.self_attn", "model.layers.*.self_attn.o_proj", "re:.*down_proj"})
    CHECK_THROWS_WITH(ignoring(one), ContainsSubstring("in several formats are not supported"));
}

TEST_CASE("blocks of FP8 are read, and settings of single matrices are refused", "[families]") {
  const auto stored = [](const std::string& text) {
    return *read_stored_weights(JsonFields("config.json", R"({"quantization_config": {)" + text + "}}"));
  };
  const StoredWeights fp8 = stored(R"("quant_method": "fp8", "weight_block_size": [128, 64])");
  CHECK((fp8.block_rows == 128 && fp8.block_columns == 64 && !fp8.lm_head));
  CHECK(stored(R"("quant_method": "fp8")").block_rows == 0);
  CHECK_THROWS_WITH(stored(R"("quant_method": "fp8", "weight_block_size": [128])"),
                    ContainsSubstring("must be two positive numbers"));
  CHECK_THROWS_WITH(stored(R"("quant_method": "fp8", "quantized_layers": {"layers.0": {}})"),
                    ContainsSubstring("settings of their own"));
  const std::string group =
      R"("quant_method": "compressed-tensors", "config_groups": {"group_0": {"targets": ["Linear"],
                               "weights": {"type": "float", )";
  CHECK(stored(group + R"("num_bits": 4, "group_size": 32}}})").format.dtype == Dtype::mxfp4);
  CHECK_THROWS_WITH(stored(group + R"("num_bits": 4, "group_size": 16}}})"), ContainsSubstring("must be 32"));
}
