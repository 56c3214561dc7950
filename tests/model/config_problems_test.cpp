// What is wrong with a config.json: one message, with the line of the key at fault where it stands in the file.
#include <string>

#include "core/error.hpp"
#include "model/model_config.hpp"
#include "tests/support/catch.hpp"

namespace dculab {
namespace {

// A small DeepSeek-V3, one key a line; `changes` are further lines, the first of them the third of the file.
[[nodiscard]] std::string deepseek(const std::string& changes, const std::string& ranks = R"("kv_lora_rank": 32,
"q_lora_rank": 24,)") {
  return "{\n\"model_type\": \"deepseek_v3\",\n" + changes + ranks + R"(
"hidden_size": 64, "intermediate_size": 128, "moe_intermediate_size": 32, "num_attention_heads": 4,
"num_hidden_layers": 4, "qk_nope_head_dim": 16, "v_head_dim": 16, "vocab_size": 100, "n_shared_experts": 1})";
}

[[nodiscard]] std::string llama(const std::string& changes) {
  return "{\n\"model_type\": \"llama\",\n" + changes + R"(
"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100})";
}

[[nodiscard]] std::string refusal(const std::string& text) {
  try {
    (void)parse_model_shape(text, "config.json", "small");
  } catch (const InputError& error) {
    return error.what();
  }
  return "none";
}

[[nodiscard]] std::string quantized(const std::string& fields) {
  return refusal(llama("\"quantization_config\": {\n" + fields + "},"));
}

TEST_CASE("ranks of latents are not assumed", "[families]") {
  CHECK(refusal(deepseek("")) == "none");
  CHECK(refusal(deepseek("", R"("kv_lora_rank": 32, "q_lora_rank": null,)")) == "none");
  CHECK(refusal(deepseek("", R"("q_lora_rank": 24,)")) == "config.json: 'kv_lora_rank' is missing");
  CHECK(refusal(deepseek("", R"("q_lora_rank": 24, "kv_lora_rank": null,)")) ==
        "config.json:3: 'kv_lora_rank' is null, and must be given");
  CHECK(refusal(deepseek("", R"("kv_lora_rank": 32,)")) ==
        "config.json: 'q_lora_rank' is missing; it is null where queries have no latent");
}

TEST_CASE("a problem of several keys has the line of one of them", "[families]") {
  CHECK(refusal(deepseek("\"num_experts_per_tok\": 300,\n")) ==
        "config.json:3: num_experts_per_tok (300) is more than the 128 experts to choose from");
  CHECK(refusal(deepseek("\"topk_method\": \"noaux_tc\",\n\"n_group\": 7,\n")) ==
        "config.json:4: n_group (7) does not divide the 256 experts");
  CHECK(refusal(deepseek("\"topk_group\": 9,\n")) == "config.json:3: topk_group (9) is more than n_group (8)");
  CHECK(refusal(deepseek("\"qk_rope_head_dim\": 7,\n")) ==
        "config.json:3: qk_rope_head_dim must be even for rotary embedding");
  CHECK(refusal(llama("\"num_key_value_heads\": 3,")) ==
        "config.json:3: num_attention_heads (4) is not a multiple of num_key_value_heads (3); use 1, 2 or 4");
  CHECK(
      refusal(R"({"model_type": "foo", "vision_config": {"num_key_value_heads": 1},
"text_config": {
"model_type": "llama", "num_key_value_heads": 3, "hidden_size": 64, "vocab_size": 100}})") ==
      "config.json:3: num_attention_heads (32) is not a multiple of num_key_value_heads (3); use 1, 2, 4, 8, 16 or 32");
  CHECK(refusal(R"({"model_type": "dculab_cla", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 3,
"num_attention_heads": 4, "vocab_size": 100,
"kv_source_layers": [0, 0, 1]})") == "config.json:3: layer 2 reads the KV of layer 1, which has none of its own");
}

TEST_CASE("what an object inside lacks is told with its name and line", "[families]") {
  CHECK(refusal(llama("\"rope_scaling\": {\n\"type\": \"yarn\"},")) ==
        "config.json:3: rope_scaling: 'factor' is missing");
  CHECK(refusal(llama("\"rope_scaling\": {\"type\": \"su\", \"original_max_position_embeddings\": 64,\n"
                      "\"short_factor\": [1], \"long_factor\": [1]},")) ==
        "config.json:4: short_factor and long_factor of LongRoPE must have 8 entries");
  CHECK(refusal(llama("\"quantization_config\": {},")) ==
        "config.json:3: quantization_config: 'quant_method' is missing");
}

TEST_CASE("layers and choices that do not exist are refused", "[families]") {
  CHECK(refusal(deepseek("\"first_k_dense_replace\": 4,\n")) == "none");
  CHECK(refusal(deepseek("\"first_k_dense_replace\": 5,\n")) ==
        "config.json:3: 'first_k_dense_replace' (5) is more than the 4 layers");
  CHECK(refusal(deepseek("\"topk_method\": \"magic\",\n")) ==
        "config.json:3: 'topk_method' 'magic' is not supported (greedy, group_limited_greedy, noaux_tc)");
  CHECK(refusal(R"({"model_type": "qwen3_moe", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
"num_attention_heads": 4, "vocab_size": 100,
"mlp_only_layers": [2]})") == "config.json:3: 'mlp_only_layers' names layer 2, and the layers are 0 to 1");
}

TEST_CASE("compressed-tensors quantizes what its targets name", "[families]") {
  const auto read = [](const std::string& targets, const std::string& more = "") {
    return parse_model_shape(llama(R"("quantization_config": {"quant_method": "compressed-tensors", "config_groups":
      {"group_0": {"targets": )" + targets +
                                   R"(, "weights": {"num_bits": 4, "group_size": 32}}})" + more + "},"),
                             "config.json", "small");
  };
  CHECK(read(R"(["Linear"])").plain == PlainParts{});
  CHECK(read(R"(["Linear"])").quantized_lm_head);
  CHECK(read(R"(["re:.*"])").plain == PlainParts{});
  const ModelShape mlp = read(R"(["re:.*mlp.*"])");
  CHECK(mlp.plain == PlainParts{.attention = true});
  CHECK_FALSE(mlp.quantized_lm_head);
  CHECK(read(R"(["re:.*self_attn.*", "lm_head"])").plain ==
        PlainParts{.mlp = true, .shared_experts = true, .experts = true});
  CHECK_THROWS_WITH(read(R"(["Conv1d"])"), ContainsSubstring("'targets' names no matrices of the layers"));
  CHECK_THROWS_WITH(read(R"(["re:.*q_proj"])"), ContainsSubstring("several formats are not supported"));
  CHECK_THROWS_WITH(read(R"(["re:.*mlp("])"), ContainsSubstring("'re:.*mlp(', which is not a regular expression"));
  CHECK_THROWS_WITH(read(R"(["Linear"])", R"(, "ignore": ["re:*mlp"])"), ContainsSubstring("not a regular expression"));
  CHECK_THROWS_WITH(read(R"(["Linear"])", R"(, "ignore": ["re:.*"])"), ContainsSubstring("leaves all matrices"));
  CHECK_THROWS_WITH(read(R"(["re:)" + std::string(1000, '(') + "\"]"), ContainsSubstring("more than 500 characters"));
  CHECK_THROWS_WITH(read(R"(["Linear"])", R"(, "ignore": ["model.layers"])"), ContainsSubstring("leaves all matrices"));
  CHECK_THROWS_WITH(read("null"), ContainsSubstring("'targets' is missing"));
  CHECK(read(R"(["Linear"])", R"(, "sparsity_config": {"format": "dense"})").quantized_lm_head);
  CHECK_THROWS_WITH(read(R"(["Linear"])", R"(, "sparsity_config": {"format": "sparse-24-bitmask"})"),
                    ContainsSubstring("'sparse-24-bitmask' is not supported"));
}

TEST_CASE("groups of weights that go beyond a row, and two widths at once, are refused", "[families]") {
  for (const char* method : {"gptq", "awq"})
    CHECK(quantized(R"("quant_method": ")" + std::string(method) + "\", \"bits\": 4,\n\"group_size\": 40") ==
          "config.json:5: groups of 40 weights do not divide the 64 columns of a matrix");
  CHECK(quantized(R"("quant_method": "gptq", "bits": 4, "group_size": 64)") ==
        "config.json:4: groups of 64 weights do not divide the 96 columns of a matrix");
  CHECK(quantized("\"quant_method\": \"bitsandbytes\", \"load_in_4bit\": true,\n\"load_in_8bit\": true") ==
        "config.json:5: 'load_in_8bit' and load_in_4bit are both true, and only one can be");
}

}  // namespace
}  // namespace dculab
