// Models in traces: what only some families have survives the way through a file.
#include "config/trace_file.hpp"
#include "tests/config/small_trace.hpp"
#include "tests/support/catch.hpp"

namespace dculab::config {
namespace {

TEST_CASE("kinds of layers, and what only newer families have, survive the way through a file") {
  Trace trace = small_trace();
  ModelShape& model = trace.steps[0].model;
  LayerKind full = model.kinds[0];
  full.norms = NormPlacement::sandwich;
  full.gqa().qk_norm = QkNorm::per_head;
  full.gqa().query_scalar = 12;
  full.gqa().logit_soft_cap = 50;
  full.gqa().position.rotary_dim = 4;
  full.gqa().position.pairs = RopePairs::neighbours;
  full.gqa().position.rope_scaling = {
      .kind = RopeScalingKind::yarn, .factor = 4, .beta_fast = 16, .truncate = false, .attention_factor = 1.25};
  LayerKind windowed = full;
  windowed.gqa().sliding_window = 64;
  windowed.gqa().k_eq_v = windowed.gqa().v_norm = true;
  windowed.gqa().position.rope_scaling = {.kind = RopeScalingKind::longrope, .factor = 2, .short_factor = {1, 1.5}};
  model.kinds.clear(), model.layers.clear();
  for (const LayerKind& kind : {windowed, windowed, full, windowed}) add_layer(model, kind);
  model.unit_offset_norms = true, model.embedding_scale = 8, model.final_logit_soft_cap = 30;
  model.learned_positions = 34;
  model.kinds[1].gqa().position.kind = PositionKind::none;
  model.kinds[1].mlp.activation = ActivationKind::relu;
  leave_out_ops(trace.steps[0]);
  const Trace again = read_trace("t.jsonl", trace_json_lines(trace));
  CHECK(again.steps[0].model == model);
  CHECK(again.steps[0].model.layers == std::vector<std::uint8_t>{0, 0, 1, 0});
}

TEST_CASE("attention over compressed entries survives the way through a file") {
  Trace trace = small_trace();
  ModelShape& model = trace.steps[0].model;
  LayerKind window = model.kinds[0];
  CompressedAttention attention{.num_attention_heads = 4,
                                .head_dim = 16,
                                .qk_rope_head_dim = 4,
                                .q_lora_rank = 8,
                                .o_groups = 2,
                                .o_lora_rank = 6,
                                .sliding_window = 128};
  window.attention = attention;
  LayerKind sparse = window;
  attention.compress_ratio = 4, attention.index_n_heads = 3, attention.index_head_dim = 8, attention.index_topk = 16;
  sparse.attention = attention;
  model.kinds.clear(), model.layers.clear();
  for (const LayerKind& kind : {window, sparse, sparse}) add_layer(model, kind);
  model.residual_streams = 4, model.sinkhorn_iterations = 20;
  leave_out_ops(trace.steps[0]);
  CHECK(read_trace("t.jsonl", trace_json_lines(trace)).steps[0].model == model);
}

TEST_CASE("attention over latents survives the way through a file, with its norms and its form") {
  Trace trace = small_trace();
  TraceStep& step = trace.steps[0];
  LayerKind kind = step.model.kinds[0];
  kind.norms = NormPlacement::sandwich;
  kind.attention = Mla{.num_attention_heads = 4,
                       .q_lora_rank = 24,
                       .kv_lora_rank = 32,
                       .qk_nope_head_dim = 16,
                       .qk_rope_head_dim = 8,
                       .v_head_dim = 16,
                       .bias = true,
                       .score_factor = 1.5};
  set_layers(step.model, 2, kind);
  step.options.prefill_latents = LatentForm::absorb;
  step.options.kv_cache_dtype = Dtype::f16;
  leave_out_ops(step);
  const Trace again = read_trace("t.jsonl", trace_json_lines(trace));
  CHECK(again.steps[0].model == step.model);
  CHECK(again.steps[0].options.prefill_latents == LatentForm::absorb);
  CHECK(again.steps[0].options.decode_latents == LatentForm::absorb);
}

TEST_CASE("a trace of version 1 has the keys of its only kind of layers beside the model's") {
  const Trace trace = small_trace();
  std::string text = trace_json_lines(trace);
  const std::string begin = R"("layer_kinds":[{)";
  for (std::size_t at = text.find(begin); at != std::string::npos; at = text.find(begin)) {
    const std::size_t end = text.find("}]", at);
    REQUIRE(end != std::string::npos);
    text.erase(end, 2).erase(at, begin.size());
  }
  text.replace(text.find("dculab/trace/2"), 14, "dculab/trace/1");
  const Trace again = read_trace("t.jsonl", text);
  REQUIRE(again.steps.size() == 2);
  CHECK(again.steps[0].model == trace.steps[0].model);
  CHECK(again.steps[1].model == trace.steps[1].model);
  text.replace(text.find("\"mlp\""), 5, "\"mlq\"");
  REQUIRE_THROWS_WITH(read_trace("t.jsonl", text), ContainsSubstring("t.jsonl:2: layer_kinds.mlp: missing"));
}

TEST_CASE("a mixture of experts and its load survive the way through a file") {
  Trace trace = small_trace();
  ModelShape& model = trace.steps[0].model;
  LayerKind dense = model.kinds[0], mixture = dense;
  mixture.mlp.intermediate_size = 0;
  mixture.experts = Experts{.num_experts = 12,
                            .num_experts_per_tok = 3,
                            .intermediate_size = 32,
                            .activation = ActivationKind::gelu,
                            .scoring = ExpertScoring::sigmoid,
                            .normalized = false,
                            .scaling = 2.5,
                            .num_groups = 4,
                            .groups_per_tok = 2,
                            .correction_bias = true,
                            .shared_gate = true,
                            .by_token_id = true,
                            .own_norms = true};
  model.kinds.clear(), model.layers.clear();
  for (const LayerKind& kind : {dense, mixture, mixture}) add_layer(model, kind);
  leave_out_ops(trace.steps[0]);
  for (const ExpertLoad& load :
       {ExpertLoad{}, ExpertLoad{.zipf_exponent = 0.75}, ExpertLoad{.histogram = std::vector<double>(12, 2.0)}}) {
    trace.steps[0].options.expert_load = load;
    const std::string text = trace_json_lines(trace);
    CHECK((text.find("expert_load") == std::string::npos) == (load == ExpertLoad()));
    const Trace again = read_trace("t.jsonl", text);
    CHECK(again.steps[0].model == model);
    CHECK(again.steps[0].options.expert_load == load);
  }
  mixture.experts->normalized = true;  // as it is where a trace does not say
  model.kinds.clear(), model.layers.clear();
  for (const LayerKind& kind : {dense, mixture, mixture}) add_layer(model, kind);
  const std::string standard = trace_json_lines(trace);
  CHECK_THAT(standard, !ContainsSubstring("normalized"));
  CHECK(read_trace("t.jsonl", standard).steps[0].model == model);
  trace.steps[0].options.expert_load = {.histogram = {1, 2}};
  REQUIRE_THROWS_WITH(read_trace("t.jsonl", trace_json_lines(trace)),
                      ContainsSubstring("the histogram of experts counts 2 of them, and the model has 12"));
}

TEST_CASE("a trace keeps what tells a family from Llama, and writes nothing of it for Llama") {
  Trace trace = small_trace();
  CHECK(trace_json_lines(trace).find("qkv_bias") == std::string::npos);
  leave_out_ops(trace.steps[0]);
  ModelShape& model = trace.steps[0].model;
  model.kinds[0].mlp.activation = ActivationKind::gelu_tanh;
  model.norm = NormKind::layer_norm;
  model.kinds[0].block = BlockKind::parallel_two_norms;
  model.kinds[0].gqa().position.kind = PositionKind::alibi;
  model.kinds[0].gqa().position.alibi_scale = 0.125;
  model.embedding_norm = model.kinds[0].gqa().output_bias = model.quantized_lm_head = true;
  model.plain = {.attention = true, .shared_experts = true};
  model.kinds[0].gqa().sliding_window = 300;
  model.tie_word_embeddings = false;
  const Trace again = read_trace("t.jsonl", trace_json_lines(trace));
  const ModelShape& read = again.steps[0].model;
  CHECK(read.kinds[0].mlp.activation == ActivationKind::gelu_tanh);
  CHECK(read.norm == NormKind::layer_norm);
  CHECK(read.kinds[0].block == BlockKind::parallel_two_norms);
  CHECK(read.kinds[0].gqa().position.kind == PositionKind::alibi);
  CHECK(read.kinds[0].gqa().position.alibi_scale == 0.125);
  CHECK((read.embedding_norm && read.kinds[0].gqa().output_bias && read.quantized_lm_head));
  CHECK((!read.kinds[0].gqa().qkv_bias && !read.kinds[0].mlp.bias));
  CHECK(read.plain == model.plain);
  CHECK(read.kinds[0].gqa().sliding_window == 300);
  CHECK(again.steps[1].model.norm == NormKind::rms_norm);
}

}  // namespace
}  // namespace dculab::config
