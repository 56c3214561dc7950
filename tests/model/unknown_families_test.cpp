// Decoders of families that are not known: what is assumed of them, and which are refused.
#include <algorithm>

#include "model/kv/kv_bytes.hpp"
#include "tests/model/small_config.hpp"
#include "tests/support/catch.hpp"

namespace dculab {
namespace {

TEST_CASE("a dense decoder that is not known is predicted like Llama, with one note of what was assumed",
          "[families]") {
  const ModelShape model = read_small("foo", "");
  REQUIRE(model.notes.size() == 1);
  CHECK(model.notes.front() ==
        "model_type 'foo' is not known: predicted as a dense decoder like Llama (RMSNorm, gated SiLU MLP, RoPE, no "
        "biases)");
  CHECK(model.tensor_names == nullptr);
  CHECK(weight_footprint(model, {}) == weight_footprint(read_small("llama", ""), {}));
  CHECK(kv_bytes_per_token(model, Dtype::bf16) == kv_bytes_per_token(read_small("llama", ""), Dtype::bf16));
  CHECK(read_small("llama", "").notes.empty());
}

TEST_CASE("what an unknown decoder's configuration says is taken, and stands in the note", "[families]") {
  const ModelShape mimo = read_small("mimo", R"(, "attention_bias": true, "num_nextn_predict_layers": 1,
    "use_sliding_window": false, "sliding_window": 64)");
  CHECK_THAT(mimo.notes.front(), ContainsSubstring("biases of attention)"));
  REQUIRE(mimo.notes.size() == 2);
  CHECK_THAT(mimo.notes[1], ContainsSubstring("(num_nextn_predict_layers) are not counted"));
  CHECK(mimo.kinds[0].gqa().sliding_window == 0);
  const ModelShape windowed = read_small("foo", R"(, "sliding_window": 64, "layer_norm_eps": 1e-5, "layer_types":
    ["sliding_attention", "full_attention", "sliding_attention", "sliding_attention"])");
  CHECK_THAT(windowed.notes.front(), ContainsSubstring("LayerNorm"));
  CHECK_THAT(windowed.notes.front(), ContainsSubstring("a window of 64 tokens in 3 of 4 layers"));
  CHECK(windowed.num_layers(0) == 3);
  CHECK(read_small("foo", R"(, "sliding_window": 64, "sliding_window_pattern": 2)").num_layers(0) == 2);
  CHECK(read_small("foo", R"(, "eos_token_id": [1, 2, 3, 4])").notes.size() == 1);
  const ModelShape chatglm = read_text_of(
      R"({"architectures": ["ChatGLMModel"], "model_type": "chatglm", "hidden_size": 64, "ffn_hidden_size": 96,
    "num_layers": 2, "num_attention_heads": 4, "kv_channels": 16, "multi_query_group_num": 2, "padded_vocab_size": 128,
    "add_qkv_bias": true, "rmsnorm": true, "layernorm_epsilon": 1e-5, "seq_length": 512})");
  CHECK(chatglm.kinds[0].mlp.intermediate_size == 96);
  CHECK(chatglm.heads().num_key_value_heads == 2);
  CHECK(chatglm.max_position_embeddings == 512);
}

TEST_CASE("what is not dense is refused with its part, its line and what is nearest", "[families]") {
  const auto reported = [](const std::string& fields) { return refusal_of(config_of("foo", fields)); };
  const std::string nearest = "; nearest that can be predicted: ";
  CHECK(reported(R"(, "layers_block_type": ["mamba", "attention", "mamba", "mamba"])") ==
        "config.json:2: 'model_type' 'foo' cannot be predicted: it has mamba layers in 3 of 4" + nearest +
            "qwen3-0.6b");
  // Nemotron-H writes a number that is none in JSON.
  CHECK_THAT(reported(R"(, "time_step_limit": [0.0, Infinity], "hybrid_override_pattern": "M-*-")"),
             ContainsSubstring("mamba layers in 1 of 4"));
  CHECK_THAT(reported(R"(, "layer_types": ["linear_attention", "full_attention", "full_attention", "full_attention"])"),
             ContainsSubstring("linear attention layers in 1 of 4"));
  CHECK_THAT(reported(R"(, "linear_attn_config": {"kda_layers": [1, 2, 3]})"),
             ContainsSubstring("linear attention layers in 3 of 4"));
  CHECK_THAT(reported(R"(, "full_attention_interval": 4)"), ContainsSubstring("linear attention layers in 3 of 4"));
  CHECK_THAT(reported(R"(, "mamba_d_state": 16)"), ContainsSubstring("mamba layers (mamba_d_state)"));
  CHECK_THAT(reported(R"(, "n_routed_experts": 256, "moe_intermediate_size": 2048)"),
             ContainsSubstring("256 routed experts (n_routed_experts)" + nearest + "qwen3-30b-a3b"));
  CHECK_THAT(reported(R"(, "kv_lora_rank": 512, "q_lora_rank": 1536)"),
             ContainsSubstring("it has multi-head latent attention (kv_lora_rank);"));
  CHECK_THAT(reported(R"(, "block_configs": [{}, {}, {}, {}])"),
             ContainsSubstring("layers that differ (block_configs)"));
  CHECK_THAT(reported(R"(, "is_encoder_decoder": true)"), ContainsSubstring("an encoder"));
  for (const char* none : {R"(, "num_experts": null)", R"(, "num_experts": 1)", R"(, "is_encoder_decoder": false)",
                           R"(, "num_kv_shared_layers": 0)"})
    CHECK(reported(none).empty());
}

TEST_CASE("encoders, recurrences and layers that share K and V are not taken for a dense decoder", "[families]") {
  const auto reported = [](const std::string& fields, const char* type = "foo") {
    return refusal_of(config_of(type, fields));
  };
  CHECK_THAT(reported(R"(, "architectures": ["ModernBertForMaskedLM"])"),
             ContainsSubstring("another task than to continue text (ModernBertForMaskedLM)"));
  CHECK_THAT(reported("", "bert"), ContainsSubstring("an encoder (model_type)"));
  CHECK_THAT(reported(R"(, "image_size": 224, "patch_size": 16)"),
             ContainsSubstring("an encoder of images (patch_size)"));
  CHECK_THAT(reported("", "rwkv"), ContainsSubstring("recurrent layers of RWKV (model_type)"));
  CHECK_THAT(reported(R"(, "decay_low_rank_dim": 64)"), ContainsSubstring("recurrent layers of RWKV"));
  CHECK_THAT(reported(R"(, "use_cla": true, "cla_share_factor": 2)"), ContainsSubstring("shared by layers (use_cla)"));
  CHECK_THAT(reported(R"(, "attn_type_list": [0, 0, 0, 1])"), ContainsSubstring("linear attention layers in 3 of 4"));
  for (const char* decoder : {R"(, "architectures": ["FooForCausalLM"])", R"(, "architectures": ["FooLMHeadModel"])",
                              R"(, "architectures": ["FooModel"], "auto_map": {"AutoModelForCausalLM": "foo.Foo"})",
                              R"(, "attn_type_list": [1, 1, 1, 1])", R"(, "use_cla": false)"})
    CHECK(reported(decoder).empty());
  CHECK(reported(R"(, "architectures": ["ModernBertDecoderForCausalLM"])", "modernbert-decoder").empty());
}

TEST_CASE("layers without positions and a dtype that is not there stand in the note", "[families]") {
  const ModelShape smollm = read_small("smollm3", R"(, "no_rope_layers": [1, 1, 1, 0], "no_rope_layer_interval": 4)");
  REQUIRE(smollm.notes.size() == 1);
  CHECK_THAT(smollm.notes.front(), ContainsSubstring("gated SiLU MLP, RoPE in 3 of 4 layers, no biases)"));
  CHECK(smollm.layer(2).gqa().position.kind == PositionKind::rope);
  CHECK(smollm.layer(3).gqa().position.kind == PositionKind::none);
  CHECK_THAT(refusal_of(config_of("smollm3", ",\n\"no_rope_layers\": [1, 0]")),
             ContainsSubstring("config.json:5: 'no_rope_layers' must have 0 or 1 for each of the 4 layers"));
  const ModelShape silent = read_text_of(R"({"model_type": "foo", "hidden_size": 64, "intermediate_size": 128,
    "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100})");
  CHECK(silent.dtype == Dtype::bf16);
  REQUIRE(silent.notes.size() == 1);
  CHECK_THAT(silent.notes.front(), ContainsSubstring("no biases); its config.json has no dtype: BF16 is assumed"));
}

TEST_CASE("every model that is named as the nearest is shipped and can be predicted", "[families]") {
  std::vector<std::string> named;
  for (const char* experts : {"", R"(, "num_experts": 8)", R"(, "num_experts": 128)"})
    for (const int hidden : {64, 1024, 2048, 4096, 5120, 6144, 8192, 16384})
      for (const int layers : {4, 32, 64, 126}) {
        const std::string size = std::to_string(hidden);
        const std::string reported = refusal_of(
            R"({"model_type": "foo", "hidden_size": )" + size + R"(, "num_hidden_layers": )" + std::to_string(layers) +
            R"(, "intermediate_size": )" + size + R"(, "kv_lora_rank": 512)" + experts + "}");
        const std::string before = "nearest that can be predicted: ";
        REQUIRE(reported.find(before) != std::string::npos);
        named.push_back(reported.substr(reported.find(before) + before.size()));
      }
  std::ranges::sort(named);
  named.erase(std::unique(named.begin(), named.end()), named.end());
  CHECK(named.size() >= 9);
  for (const std::string& name : named) CHECK(problems(shipped_dense(name)).empty());
}

TEST_CASE("a size that is missing or makes no sense is refused with its line", "[families]") {
  CHECK_THAT(
      refusal_of("{\n\"model_type\": \"gpt2\", \"n_embd\": 768}"),
      ContainsSubstring("config.json:2: 'model_type' 'gpt2' is not known, and its config.json has no hidden_size"));
  CHECK_THAT(refusal_of(config_of("foo", ",\n\"num_key_value_heads\": \"four\"")),
             ContainsSubstring("config.json:5: 'num_key_value_heads' must be an integer"));
  CHECK_THAT(refusal_of(config_of("foo", ",\n\"num_key_value_heads\": -4")), ContainsSubstring("must be positive"));
  CHECK_THAT(refusal_of(config_of("foo", ",\n\"num_key_value_heads\": 3")),
             ContainsSubstring("is not a multiple of num_key_value_heads"));
  CHECK_THAT(refusal_of(config_of("foo", ",\n\"hidden_act\": \"relu2\"")),
             ContainsSubstring("config.json:5: 'hidden_act' 'relu2' is not supported"));
  CHECK_THAT(refusal_of("{\"model_type\": \"foo\",\n\"text_config\": [1]}"),
             ContainsSubstring("config.json:2: 'text_config' must be an object"));
  CHECK_THAT(refusal_of("{\"model_type\": \"foo\", \"text_config\": {\"text_config\": {\"hidden_size\": 64}}}"),
             ContainsSubstring("has no hidden_size"));
  CHECK_THAT(refusal_of(config_of("foo", ",\n\"attn_layer_period\": -2")), ContainsSubstring("config.json:5"));
}

}  // namespace
}  // namespace dculab
