// Dense families most of which are priced and not run, and decoders inside of other models.
#include <algorithm>

#include "model/families/families.hpp"
#include "tests/model/small_config.hpp"
#include "tests/model/small_plan.hpp"

namespace dculab {
namespace {

[[nodiscard]] double parameters_of(ModelShape model) {
  model.dtype = Dtype::f32, model.quantization.reset();
  return weight_footprint(model, {Dtype::f32, 0}) / storage(Dtype::f32, 1);
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

TEST_CASE("of a model that also sees, the text model is predicted, with a note of what is not counted", "[families]") {
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
