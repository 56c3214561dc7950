// What config.json and generation_config.json say, and what they leave out.
#include "model/folder/model_config.hpp"

#include <filesystem>
#include <fstream>
#include <string>

#include "core/error.hpp"
#include "model/model_config.hpp"
#include "tests/support/catch.hpp"

namespace dculab {
namespace {

// A minimal config.json with `extra` fields, each preceded by a comma.
ModelShape shape_with(const std::string& extra, const std::string& type = "llama") {
  return parse_model_shape(R"({"model_type": ")" + type +
                               R"(", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,)"
                               R"( "num_attention_heads": 4, "vocab_size": 100)" +
                               extra + "}",
                           "config.json", "test");
}

std::string error_with(const std::string& extra, const std::string& type = "llama") {
  try {
    static_cast<void>(shape_with(extra, type));
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("what config.json leaves out has Hugging Face's defaults") {
  const ModelShape shape = shape_with("");
  REQUIRE(shape.kinds[0].gqa().heads.num_key_value_heads == 4);
  REQUIRE(shape.kinds[0].gqa().heads.head_dim == 16);
  REQUIRE(shape.max_position_embeddings == 2048);
  REQUIRE(shape.kinds[0].gqa().position.rope_theta == 10000.0);
  REQUIRE(shape.norm_eps == 1e-6);
  REQUIRE_FALSE(shape.tie_word_embeddings);
  REQUIRE(shape.dtype == Dtype::f32);
  REQUIRE(shape.kinds[0].gqa().position.rope_scaling.kind == RopeScalingKind::none);
  REQUIRE(shape_with(R"(, "num_key_value_heads": null, "rope_scaling": null, "head_dim": null)").heads().head_dim ==
          16);
}

TEST_CASE("both spellings of dtype are read") {
  REQUIRE(shape_with(R"(, "torch_dtype": "bfloat16")").dtype == Dtype::bf16);
  REQUIRE(shape_with(R"(, "dtype": "float16")").dtype == Dtype::f16);
}

TEST_CASE("rope scaling is read from older and newer exports") {
  const ModelShape old_linear = shape_with(R"(, "rope_theta": 5e5, "rope_scaling": {"type": "linear", "factor": 4})");
  REQUIRE(old_linear.kinds[0].gqa().position.rope_scaling.kind == RopeScalingKind::linear);
  REQUIRE(old_linear.kinds[0].gqa().position.rope_scaling.factor == 4.0);
  REQUIRE(old_linear.kinds[0].gqa().position.rope_theta == 5e5);
  const std::string llama3 = R"({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                                 "original_max_position_embeddings": 8192, "rope_theta": 5e5})";
  for (const std::string key : {"rope_scaling", "rope_parameters"}) {
    const ModelShape shape = shape_with(R"(, ")" + key + R"(": )" + llama3);
    REQUIRE(shape.kinds[0].gqa().position.rope_scaling.kind == RopeScalingKind::llama3);
    REQUIRE(shape.kinds[0].gqa().position.rope_scaling.high_freq_factor == 4.0);
    REQUIRE(shape.kinds[0].gqa().position.rope_scaling.original_max_position_embeddings == 8192);
    REQUIRE(shape.kinds[0].gqa().position.rope_theta == (key == "rope_parameters" ? 5e5 : 1e4));
  }
  REQUIRE(shape_with(R"(, "rope_parameters": {"rope_type": "default", "rope_theta": 2e4})")
              .kinds[0]
              .gqa()
              .position.rope_theta == 2e4);
}

TEST_CASE("mistral has a window of 4096 unless config.json says otherwise, and none that never slides") {
  const auto window = [](const std::string& extra) {
    return shape_with(R"(, "num_key_value_heads": 2)" + extra, "mistral").kinds[0].gqa().sliding_window;
  };
  REQUIRE(window("") == 4096);
  REQUIRE(window(R"(, "sliding_window": null)") == 0);
  REQUIRE(window(R"(, "sliding_window": 1024)") == 1024);
  REQUIRE(window(R"(, "sliding_window": 4096, "max_position_embeddings": 4096)") == 0);
  REQUIRE(shape_with(R"(, "num_key_value_heads": null)", "mistral").heads().num_key_value_heads == 4);
}

TEST_CASE("qwen2 has biases for Q, K and V alone, and a window in the layers after the first") {
  const std::string heads = R"(, "num_key_value_heads": 2)";
  const ModelShape shape = shape_with(heads, "qwen2");
  REQUIRE(shape.kinds[0].gqa().qkv_bias);
  REQUIRE_FALSE(shape.kinds[0].gqa().output_bias);
  REQUIRE_FALSE(shape.kinds[0].mlp.bias);
  const auto window = [&](const std::string& extra) {
    return shape_with(heads + R"(, "use_sliding_window": true, "sliding_window": 512)" + extra, "qwen2")
        .kinds[0]
        .gqa()
        .sliding_window;
  };
  REQUIRE(shape_with(heads + R"(, "sliding_window": 512)", "qwen2").kinds[0].gqa().sliding_window == 0);
  REQUIRE(window("") == 0);  // from layer 28 on, and there are 2
  REQUIRE(window(R"(, "max_window_layers": 2)") == 0);
  REQUIRE(window(R"(, "max_window_layers": 0)") == 512);
  REQUIRE(window(R"(, "max_window_layers": 0, "layer_types": ["full_attention", "full_attention"])") == 0);
  const ModelShape mixed =
      shape_with(heads + R"(, "use_sliding_window": true, "sliding_window": 512, "max_window_layers": 1)", "qwen2");
  REQUIRE(mixed.layers == std::vector<std::uint8_t>{0, 1});
  REQUIRE(mixed.kinds[0].gqa().sliding_window == 0);
  REQUIRE(mixed.kinds[1].gqa().sliding_window == 512);
}

TEST_CASE("llama may have biases") {
  const ModelShape attention = shape_with(R"(, "attention_bias": true)");
  REQUIRE((attention.kinds[0].gqa().qkv_bias && attention.kinds[0].gqa().output_bias && !attention.kinds[0].mlp.bias));
  REQUIRE(shape_with(R"(, "mlp_bias": true)").kinds[0].mlp.bias);
}

TEST_CASE("bloom is read under both spellings of its sizes") {
  const ModelShape old = parse_model_shape(
      R"({"model_type": "bloom", "n_embed": 64, "n_layer": 3, "num_attention_heads": 4, "vocab_size": 9})", "f", "n");
  REQUIRE(old.hidden_size == 64);
  REQUIRE(old.kinds[0].mlp.intermediate_size == 256);
  REQUIRE(old.num_layers() == 3);
  REQUIRE(old.kinds[0].gqa().heads.num_key_value_heads == 4);
  REQUIRE(old.kinds[0].gqa().heads.head_dim == 16);
  REQUIRE(old.max_position_embeddings == 2048);
  REQUIRE(old.tie_word_embeddings);
  REQUIRE(old.kinds[0].gqa().position.kind == PositionKind::alibi);
  REQUIRE(old.kinds[0].gqa().position.alibi_scale == 1.0);
  REQUIRE(old.norm == NormKind::layer_norm);
  REQUIRE(old.norm_eps == 1e-5);
  REQUIRE(old.kinds[0].mlp.activation == ActivationKind::gelu_tanh);
  REQUIRE(
      (old.embedding_norm && old.kinds[0].gqa().qkv_bias && old.kinds[0].gqa().output_bias && old.kinds[0].mlp.bias));
  REQUIRE(old.kinds[0].block == BlockKind::sequential);
  const ModelShape newer = shape_with(R"(, "seq_length": 512)", "bloom");
  REQUIRE(newer.num_layers() == 2);
  REQUIRE(newer.max_position_embeddings == 512);
}

TEST_CASE("falcon comes with one, with some and with as many KV heads as query heads") {
  const ModelShape small = shape_with("", "falcon");
  REQUIRE(small.kinds[0].gqa().heads.num_key_value_heads == 1);
  REQUIRE(small.kinds[0].block == BlockKind::parallel);
  REQUIRE(small.kinds[0].gqa().position.kind == PositionKind::rope);
  REQUIRE(small.kinds[0].mlp.activation == ActivationKind::gelu);
  REQUIRE(small.kinds[0].mlp.intermediate_size == 256);
  REQUIRE_FALSE(small.kinds[0].gqa().qkv_bias);
  const ModelShape large = shape_with(R"(, "new_decoder_architecture": true, "n_head_kv": 2)", "falcon");
  REQUIRE(large.kinds[0].gqa().heads.num_key_value_heads == 2);
  REQUIRE(large.kinds[0].block == BlockKind::parallel_two_norms);
  const ModelShape middle =
      shape_with(R"(, "new_decoder_architecture": true, "num_kv_heads": 2, "num_ln_in_parallel_attn": 1)", "falcon");
  REQUIRE(middle.kinds[0].block == BlockKind::parallel);
  const ModelShape rw =
      shape_with(R"(, "multi_query": false, "parallel_attn": false, "alibi": true, "bias": true)", "falcon");
  REQUIRE(rw.kinds[0].gqa().heads.num_key_value_heads == 4);
  REQUIRE(rw.kinds[0].block == BlockKind::sequential);
  REQUIRE(rw.kinds[0].gqa().position.kind == PositionKind::alibi);
  REQUIRE(rw.kinds[0].gqa().position.alibi_scale == 0.25);  // 1 / sqrt(16)
  REQUIRE(rw.kinds[0].mlp.bias);
}

TEST_CASE("values that no model has are refused") {
  REQUIRE_THAT(error_with(R"(, "head_dim": 7)"), ContainsSubstring("head_dim must be even"));
  REQUIRE_THAT(error_with(R"(, "rope_theta": 0)"), ContainsSubstring("'rope_theta' must be larger than 1"));
  REQUIRE_THAT(error_with(R"(, "rms_norm_eps": -1)"), ContainsSubstring("'rms_norm_eps' must not be negative"));
  REQUIRE_THAT(error_with(R"(, "head_dim": 1000000000)"), ContainsSubstring("out of range"));
  REQUIRE_THAT(error_with(R"(, "rope_scaling": {"type": "linear", "factor": 0.5})"),
               ContainsSubstring("'factor' must be at least 1"));
  REQUIRE_THAT(error_with(R"(, "rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 4,
                            "high_freq_factor": 3, "original_max_position_embeddings": 8})"),
               ContainsSubstring("'high_freq_factor' must be at least low_freq_factor"));
  REQUIRE_THAT(error_with(R"(, "tie_word_embeddings": "yes")"), ContainsSubstring("must be true or false"));
}

TEST_CASE("the shape of a folder is named after it") {
  const auto folder = std::filesystem::path(DCULAB_SOURCE_DIR) / "tests/golden/llama/gqa";
  const ModelShape shape = read_model_shape(folder);
  REQUIRE(shape.name == "gqa");
  REQUIRE(shape.kinds[0].gqa().heads.head_dim == 16);
  REQUIRE(shape.kinds[0].gqa().heads.num_key_value_heads == 2);
  REQUIRE(read_model_shape(folder / "config.json").name == "gqa");
}

TEST_CASE("how to sample comes from generation_config.json") {
  const auto folder = std::filesystem::temp_directory_path() / "dculab_generation_config_test";
  std::filesystem::create_directories(folder);
  const auto write = [&](const char* name, const char* text) { std::ofstream(folder / name) << text; };
  write("config.json", R"({"eos_token_id": 2, "bos_token_id": 1})");
  std::filesystem::remove(folder / "generation_config.json");
  REQUIRE(read_generation_config(folder).eos_token_ids == std::vector<TokenId>{2});
  REQUIRE(read_generation_config(folder).sampling.temperature == 0.0);

  write("generation_config.json", R"({"eos_token_id": [7, 9], "do_sample": true, "temperature": 0.6, "top_p": 0.9})");
  const GenerationConfig config = read_generation_config(folder);
  REQUIRE(config.eos_token_ids == std::vector<TokenId>{7, 9});
  REQUIRE(config.bos_token_id == 1);
  REQUIRE(config.sampling.temperature == 0.6);
  REQUIRE(config.sampling.top_p == 0.9);
  REQUIRE(config.sampling.top_k == 50);

  write("generation_config.json", R"({"do_sample": true, "top_p": 1.5})");
  REQUIRE_THROWS_WITH(read_generation_config(folder), ContainsSubstring("'top_p' must lie in (0, 1]"));
  std::filesystem::remove_all(folder);
}

}  // namespace dculab
