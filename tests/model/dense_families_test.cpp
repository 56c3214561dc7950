// Dense families most of which are priced and not run, decoders of families that are not known, and what is refused.
#include <algorithm>
#include <fstream>
#include <sstream>

#include "core/error.hpp"
#include "model/families/families.hpp"
#include "model/model_config.hpp"
#include "tests/model/small_plan.hpp"

namespace dculab {
namespace {

[[nodiscard]] ModelShape shipped_dense(const std::string& name) {
  const std::string file = DCULAB_SOURCE_DIR "/scenarios/models/" + name + "/config.json";
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return parse_model_shape(text.str(), file, name);
}

[[nodiscard]] double parameters_of(ModelShape model) {
  model.dtype = Dtype::f32, model.quantization.reset();
  return weight_footprint(model, {Dtype::f32, 0}) / storage(Dtype::f32, 1);
}

// With the sizes that every family has.
[[nodiscard]] std::string config_of(const std::string& type, const std::string& fields) {
  return R"({
"model_type": ")" +
         type + R"(",
"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 4, "num_attention_heads": 4, "vocab_size": 100,
"torch_dtype": "bfloat16")" +
         fields + "}";
}

[[nodiscard]] ModelShape read_text_of(const std::string& text) {
  return parse_model_shape(text, "config.json", "small");
}

[[nodiscard]] ModelShape read_small(const std::string& type, const std::string& fields) {
  return read_text_of(config_of(type, fields));
}

[[nodiscard]] std::string refusal_of(const std::string& text) {
  try {
    (void)read_text_of(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

struct CountedModel {
  const char* name;
  double parameters;
  bool runs;
  const char* source;
};

constexpr const char* kCounted = "transformers 5.23: from_config() on the meta device, tied weights once";

constexpr CountedModel kCountedModels[] = {
    {"opt-6.7b", 6658473984, false, kCounted},
    {"pythia-6.9b-deduped", 6857302016, true, kCounted},
    {"starcoder2-7b", 7173923840, true, kCounted},
    {"granite-3.3-8b-instruct", 8170864640, false, kCounted},
    {"internlm2.5-7b-chat", 7737708544, true, "the Hub's count of internlm/internlm2_5-7b-chat's safetensors"},
    {"baichuan2-7b-chat", 7505973248, false, "the Hub's count of baichuan-inc/Baichuan2-7B-Chat's weights"}};

TEST_CASE("models of the newer dense families have the parameters that others count", "[families]") {
  for (const CountedModel& each : kCountedModels) {
    INFO(each.name << ": " << each.source);
    const ModelShape model = shipped_dense(each.name);
    CHECK(parameters_of(model) == Approx(each.parameters).epsilon(1e-3));
    CHECK((model.tensor_names != nullptr) == each.runs);
    CHECK(model.notes.empty());
    const StepPlan plan = plan_step(with_layers(model, 2), {}, uniform_batch(Phase::decode, 2, 100));
    CHECK(plan.ops.back().name == "lm_head");
  }
}

TEST_CASE("OPT adds learned positions to the embedding, and rotates nothing", "[families]") {
  const ModelShape opt = read_small("opt", R"(, "ffn_dim": 256, "max_position_embeddings": 30)");
  CHECK(opt.learned_positions == 32);
  CHECK(opt.kinds[0].mlp.intermediate_size == 256);
  CHECK(opt.kinds[0].mlp.activation == ActivationKind::relu);
  const StepPlan plan = plan_step(opt, {}, uniform_batch(Phase::decode, 2, 20));
  const Op& embedding = find(plan, "embed_tokens");
  REQUIRE(embedding.operands().size() == 3);
  CHECK(embedding.operands()[2].unique.value() == 2 * 64 * 2);
  CHECK(embedding.flops.value() == 2 * 64);
  CHECK(find(plan, "rope_and_cache").flops.value() == 0);
  CHECK_FALSE(find(plan, "attention_decode").attention.has_alibi);
  ModelShape without = opt;
  without.learned_positions = 0;
  CHECK((weight_footprint(opt, {}) - weight_footprint(without, {})).value() == 32 * 64 * 2);
  CHECK(read_small("opt", R"(, "ffn_dim": 256, "activation_function": "gelu")").kinds[0].mlp.activation ==
        ActivationKind::gelu);
}

TEST_CASE("what OPT-350M alone has is refused", "[families]") {
  const auto opt = [](const char* fields) {
    return refusal_of(config_of("opt", std::string(R"(, "ffn_dim": 256)") + fields));
  };
  CHECK_THAT(opt(R"(, "word_embed_proj_dim": 32)"), ContainsSubstring("config.json:4: 'word_embed_proj_dim'"));
  CHECK_THAT(opt(R"(, "do_layer_norm_before": false)"), ContainsSubstring("after each sum"));
  CHECK_THAT(opt(R"(, "activation_function": "tanh")"), ContainsSubstring("'tanh' is not supported (relu, gelu)"));
}

TEST_CASE("GPT-NeoX rotates the part of a head that its older and its newer keys say", "[families]") {
  const auto rotated = [](const char* fields) {
    return read_small("gpt_neox", fields).kinds[0].gqa().position.rotary_dim;
  };
  CHECK(rotated("") == 4);
  CHECK(rotated(R"(, "rotary_pct": 0.5)") == 8);
  CHECK(rotated(R"(, "rotary_pct": 0.5, "rope_parameters": {"partial_rotary_factor": 1.0})") == 16);
  const LayerKind layer = read_small("gpt_neox", R"(, "rotary_emb_base": 500)").kinds[0];
  CHECK(layer.gqa().position.rope_theta == 500);
  CHECK(layer.block == BlockKind::parallel_two_norms);
  CHECK(read_small("gpt_neox", R"(, "use_parallel_residual": false)").kinds[0].block == BlockKind::sequential);
  CHECK_THAT(refusal_of(config_of("gpt_neox", R"(, "rotary_pct": 1.5)")), ContainsSubstring("must lie in (0, 1]"));
}

TEST_CASE("StarCoder 2 has a window in all layers, and a plain MLP", "[families]") {
  const LayerKind layer = read_small("starcoder2", R"(, "sliding_window": 512)").kinds[0];
  CHECK(layer.gqa().sliding_window == 512);
  CHECK(layer.gqa().heads.num_key_value_heads == 2);
  CHECK(layer.mlp.kind == MlpKind::plain);
  CHECK((layer.mlp.bias && layer.gqa().qkv_bias && layer.gqa().output_bias));
  CHECK_FALSE(read_small("starcoder2", R"(, "use_bias": false)").kinds[0].mlp.bias);
}

TEST_CASE("Baichuan's 13B models have ALiBi, its 7B models RoPE", "[families]") {
  CHECK(read_small("baichuan", R"(, "model_max_length": 4096)").has_alibi());
  CHECK(read_small("baichuan", R"(, "model_max_length": 1024)").max_position_embeddings == 1024);
  CHECK_FALSE(shipped_dense("baichuan2-7b-chat").has_alibi());
}

TEST_CASE("Granite's scores have a scale of their own, InternLM 2 the frequencies within its context", "[families]") {
  const ModelShape granite = shipped_dense("granite-3.3-8b-instruct");
  CHECK(granite.kinds[0].gqa().score_scale() == Approx(0.0078125));
  CHECK(granite.embedding_scale == 12);
  CHECK(granite.tie_word_embeddings);
  CHECK_THAT(refusal_of(config_of("granite", R"(, "residual_multiplier": -1)")), ContainsSubstring("must be positive"));
  const ModelShape internlm = shipped_dense("internlm2.5-7b-chat");
  CHECK(internlm.kinds[0].gqa().position.rope_scaling.kind == RopeScalingKind::none);
  CHECK_FALSE(internlm.kinds[0].gqa().qkv_bias);
  CHECK(read_small("internlm2", "").kinds[0].gqa().qkv_bias);
}

TEST_CASE("a dense decoder that is not known is priced like Llama, with one note of what was assumed", "[families]") {
  const ModelShape model = read_small("foo", "");
  REQUIRE(model.notes.size() == 1);
  CHECK(
      model.notes.front() ==
      "model_type 'foo' is not known: priced as a dense decoder like Llama (RMSNorm, gated SiLU MLP, RoPE, no biases)");
  CHECK(model.tensor_names == nullptr);
  CHECK(weight_footprint(model, {}) == weight_footprint(read_small("llama", ""), {}));
  CHECK(kv_bytes_per_token(model, Dtype::bf16) == kv_bytes_per_token(read_small("llama", ""), Dtype::bf16));
  CHECK(read_small("llama", "").notes.empty());
}

TEST_CASE("what an unknown decoder's configuration says is taken, and stands in the note", "[families]") {
  const ModelShape mimo = read_small("mimo", R"(, "attention_bias": true, "num_nextn_predict_layers": 1,
    "use_sliding_window": false, "sliding_window": 64)");
  CHECK_THAT(mimo.notes.front(), ContainsSubstring("biases of attention)"));
  CHECK_THAT(mimo.notes.front(),
             ContainsSubstring("; multi-token prediction (num_nextn_predict_layers) is not counted"));
  CHECK(mimo.kinds[0].gqa().sliding_window == 0);
  const ModelShape windowed = read_small("foo", R"(, "sliding_window": 64, "layer_norm_eps": 1e-5, "layer_types":
    ["sliding_attention", "full_attention", "sliding_attention", "sliding_attention"])");
  CHECK_THAT(windowed.notes.front(), ContainsSubstring("LayerNorm"));
  CHECK_THAT(windowed.notes.front(), ContainsSubstring("a window of 64 tokens in 3 of 4 layers"));
  CHECK(windowed.num_layers(0) == 3);
  CHECK(read_small("foo", R"(, "sliding_window": 64, "sliding_window_pattern": 2)").num_layers(0) == 2);
  CHECK(read_small("foo", R"(, "eos_token_id": [1, 2, 3, 4])").notes.size() == 1);
  const ModelShape chatglm = read_text_of(R"({"model_type": "chatglm", "hidden_size": 64, "ffn_hidden_size": 96,
    "num_layers": 2, "num_attention_heads": 4, "kv_channels": 16, "multi_query_group_num": 2, "padded_vocab_size": 128,
    "add_qkv_bias": true, "rmsnorm": true, "layernorm_epsilon": 1e-5, "seq_length": 512})");
  CHECK(chatglm.kinds[0].mlp.intermediate_size == 96);
  CHECK(chatglm.heads().num_key_value_heads == 2);
  CHECK(chatglm.max_position_embeddings == 512);
}

TEST_CASE("what is not dense is refused with its part, its line and what is nearest", "[families]") {
  const auto told = [](const std::string& fields) { return refusal_of(config_of("foo", fields)); };
  const std::string nearest = "; nearest that can be priced: ";
  CHECK(told(R"(, "layers_block_type": ["mamba", "attention", "mamba", "mamba"])") ==
        "config.json:2: 'model_type' 'foo' cannot be priced: it has mamba layers in 3 of 4" + nearest + "qwen3-0.6b");
  // Nemotron-H writes a number that is none in JSON.
  CHECK_THAT(told(R"(, "time_step_limit": [0.0, Infinity], "hybrid_override_pattern": "M-*-")"),
             ContainsSubstring("mamba layers in 1 of 4"));
  CHECK_THAT(told(R"(, "layer_types": ["linear_attention", "full_attention", "full_attention", "full_attention"])"),
             ContainsSubstring("linear attention layers in 1 of 4"));
  CHECK_THAT(told(R"(, "linear_attn_config": {"kda_layers": [1, 2, 3]})"),
             ContainsSubstring("linear attention layers in 3 of 4"));
  CHECK_THAT(told(R"(, "full_attention_interval": 4)"), ContainsSubstring("linear attention layers in 3 of 4"));
  CHECK_THAT(told(R"(, "mamba_d_state": 16)"), ContainsSubstring("mamba layers (mamba_d_state)"));
  CHECK_THAT(told(R"(, "n_routed_experts": 256, "moe_intermediate_size": 2048)"),
             ContainsSubstring("256 routed experts (n_routed_experts)" + nearest + "qwen3-30b-a3b"));
  CHECK_THAT(told(R"(, "kv_lora_rank": 512, "q_lora_rank": 1536)"),
             ContainsSubstring("it has multi-head latent attention (kv_lora_rank);"));
  CHECK_THAT(told(R"(, "block_configs": [{}, {}, {}, {}])"), ContainsSubstring("layers that differ (block_configs)"));
  CHECK_THAT(told(R"(, "is_encoder_decoder": true)"), ContainsSubstring("an encoder"));
  for (const char* none : {R"(, "num_experts": null)", R"(, "num_experts": 1)", R"(, "is_encoder_decoder": false)",
                           R"(, "num_kv_shared_layers": 0)"})
    CHECK(told(none).empty());
}

TEST_CASE("every model that is named as the nearest is shipped and can be priced", "[families]") {
  std::vector<std::string> named;
  for (const char* experts : {"", R"(, "num_experts": 8)", R"(, "num_experts": 128)"})
    for (const int hidden : {64, 1024, 2048, 4096, 5120, 6144, 8192, 16384})
      for (const int layers : {4, 32, 64, 126}) {
        const std::string size = std::to_string(hidden);
        const std::string told = refusal_of(
            R"({"model_type": "foo", "hidden_size": )" + size + R"(, "num_hidden_layers": )" + std::to_string(layers) +
            R"(, "intermediate_size": )" + size + R"(, "kv_lora_rank": 512)" + experts + "}");
        const std::string before = "nearest that can be priced: ";
        REQUIRE(told.find(before) != std::string::npos);
        named.push_back(told.substr(told.find(before) + before.size()));
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

TEST_CASE("of a model that also sees, the text model is priced, with a note of what is not counted", "[families]") {
  const ModelShape qwen =
      read_text_of(R"({"model_type": "qwen3_vl", "tie_word_embeddings": false,
    "vision_config": {"hidden_size": 1024}, "text_config": )" +
                   config_of("qwen3_vl_text", R"(, "num_key_value_heads": 2, "tie_word_embeddings": true)") + "}");
  CHECK(qwen.kinds[0].gqa().qk_norm == QkNorm::per_head);
  CHECK(qwen.tie_word_embeddings);
  REQUIRE(qwen.notes.size() == 1);
  CHECK(qwen.notes.front() ==
        "the vision part of the model (vision_config) is not counted: figures are of its text model alone");
  const ModelShape flat = read_small("qwen2_vl", R"(, "num_key_value_heads": 2, "vision_config": {})");
  CHECK(flat.kinds[0].gqa().qkv_bias);
  CHECK(flat.notes.size() == 1);
  // LLaVA 1.5 says little of its Llama, Mistral 3 not even its type.
  const ModelShape llava = read_text_of(R"({"model_type": "llava", "vision_config": {}, "text_config":
    {"model_type": "llama", "max_position_embeddings": 4096, "vocab_size": 32064, "torch_dtype": "float16"}})");
  CHECK(parameters_of(llava) == 6738939904);  // Llama-2-7B's, and 64 rows more of embedding and head
  const ModelShape mistral = read_text_of(R"({"model_type": "mistral3", "vision_config": {}, "text_config":
    {"hidden_size": 5120, "num_hidden_layers": 40, "vocab_size": 131072, "intermediate_size": 32768, "head_dim": 128}})");
  CHECK(mistral.num_layers() == 40);
  CHECK(mistral.heads().num_key_value_heads == 8);
  const ModelShape unknown = read_text_of(R"({"model_type": "foo", "audio_config": {}, "vision_config": {},
    "llm_config": )" + config_of("bar", "") +
                                          "}");
  REQUIRE(unknown.notes.size() == 2);
  CHECK_THAT(unknown.notes[0], ContainsSubstring("'bar' is not known"));
  CHECK_THAT(unknown.notes[1], ContainsSubstring("the vision and audio part"));
}

}  // namespace
}  // namespace dculab
