#include "config/trace_file.hpp"

#include <string>

#include "core/error.hpp"
#include "model/plan_step.hpp"
#include "tests/support/catch.hpp"

namespace dculab::config {
namespace {

ModelShape small_model() {
  ModelShape model;
  model.name = "tiny \"quoted\"";
  model.hidden_size = 64;
  model.kinds[0].mlp.intermediate_size = 128;
  model.layers.assign(2, 0);
  model.kinds[0].gqa().heads = {8, 2, 8};
  model.vocab_size = 1000;
  model.max_position_embeddings = 512;
  model.tie_word_embeddings = true;
  model.kinds[0].mlp.kind = MlpKind::plain;
  model.dtype = Dtype::bf16;
  model.norm_eps = 1e-5;
  model.kinds[0].gqa().position.rope_theta = 500000;
  model.kinds[0].gqa().position.rope_scaling = {RopeScalingKind::llama3, 8, 1, 4, 4096};
  return model;
}

Trace small_trace() {
  Trace trace;
  trace.header = {"this-host", "two cores", "gcc 12", 2, "median of 7", "2026-01-02T03:04:05Z"};
  TraceStep step;
  step.id = "decode-b3";
  step.model = small_model();
  step.options.block_size = 32;
  step.options.kv_cache_dtype = Dtype::fp8_e4m3;
  step.options.weights = {Dtype::int4, 32};
  step.options.activation_dtype = Dtype::f32;
  step.options.enable_chunked_prefill = false;
  step.options.gpu_memory_utilization = 0.123456789;
  step.options.attention_split.partition_tokens = 0;
  step.batch = uniform_batch(Phase::decode, 3, 100);
  step.batch.sequences.push_back({3, Phase::decode, 7, 1, true});
  step.batch.sequences.push_back({4, Phase::prefill, 64, 32, false});
  step.duration = Seconds(1.0 / 3.0);
  step.spread = Seconds(1e-9);
  step.repeats = 7;
  step.batch.cold_share = 0.25;
  for (const Op& op : plan_step(step.model, step.options, step.batch).ops) {
    step.op_names.emplace_back(op.name);
    step.op_durations.push_back(Seconds(1.23456789e-6 * static_cast<double>(step.op_durations.size())));
  }
  trace.steps = {step, step};
  trace.steps[1].id = "second";
  trace.steps[1].model.kinds[0].gqa().position.rope_scaling = {};
  return trace;
}

void leave_out_ops(TraceStep& step) {
  step.op_names.clear();
  step.op_durations.clear();
}

std::string refusal(const std::string& text) {
  try {
    static_cast<void>(read_trace("t.jsonl", text));
    return "";
  } catch (const InputError& error) {
    return error.what();
  }
}

// The trace's text with `from` replaced in its second line.
std::string changed(const std::string& from, const std::string& to) {
  std::string text = trace_json_lines(small_trace());
  text.replace(text.find(from, text.find('\n')), from.size(), to);
  return text;
}

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
  trace.steps[0].options.expert_load = {.histogram = {1, 2}};
  REQUIRE_THROWS_WITH(read_trace("t.jsonl", trace_json_lines(trace)),
                      ContainsSubstring("the histogram of experts counts 2 of them, and the model has 12"));
}

TEST_CASE("a trace is written and read back the same") {
  const Trace trace = small_trace();
  const std::string text = trace_json_lines(trace);
  const Trace again = read_trace("t.jsonl", text);
  CHECK(trace_json_lines(again) == text);
  CHECK(again.header.timing == "median of 7");
  CHECK(again.header.threads == 2);
  REQUIRE(again.steps.size() == 2);
  const TraceStep& step = again.steps[0];
  CHECK(step.model.name == trace.steps[0].model.name);
  CHECK(step.model.kinds[0].mlp.kind == MlpKind::plain);
  CHECK(step.model.kinds[0].gqa().position.rope_scaling.kind == RopeScalingKind::llama3);
  CHECK(step.model.kinds[0].gqa().position.rope_scaling.original_max_position_embeddings == 4096);
  CHECK(step.options.weights == WeightFormat{Dtype::int4, 32});
  CHECK(step.options.gpu_memory_utilization == 0.123456789);
  CHECK(step.options.attention_split.partition_tokens == 0);
  CHECK(step.duration == Seconds(1.0 / 3.0));
  CHECK(step.batch.cold_share == 0.25);
  CHECK(step.op_names == trace.steps[0].op_names);
  CHECK(step.op_durations == trace.steps[0].op_durations);
  REQUIRE(step.batch.sequences.size() == 5);
  CHECK(step.batch.sequences[2].num_computed_tokens == 99);
  CHECK(step.batch.sequences[3].num_computed_tokens == 7);
  CHECK(step.batch.sequences[4].id == 4);
  CHECK(step.batch.sequences[4].phase == Phase::prefill);
  CHECK(step.batch.sequences[4].num_logits == 0);
  CHECK(again.steps[1].model.kinds[0].gqa().position.rope_scaling.kind == RopeScalingKind::none);
}

TEST_CASE("a trace of an older version, which says whether logits were needed, is read") {
  std::string text = trace_json_lines(small_trace());
  const std::string now = "\"num_logits\":0", then = "\"needs_logits\":false";
  REQUIRE(text.find(now) != std::string::npos);
  text.replace(text.find(now), now.size(), then);
  const Trace again = read_trace("t.jsonl", text);
  CHECK(again.steps[0].batch.sequences[4].num_logits == 0);
  CHECK(again.steps[0].batch.sequences[0].num_logits == 1);
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

TEST_CASE("equal sequences are stored as one run") {
  const std::string text = trace_json_lines(small_trace());
  CHECK_THAT(text, ContainsSubstring(R"("batch":[{"count":3,"phase":"decode","num_computed_tokens":99)"));
}

TEST_CASE("what was evicted and what was not written is kept, with the policy") {
  Trace trace = small_trace();
  TraceStep& step = trace.steps[0];
  leave_out_ops(step);
  step.options.enable_chunked_prefill = true;
  step.options.activations = ActivationMode::bf16;
  step.options.kv_retention = {.policy = RetentionPolicy::sinks, .sink_tokens = 3, .window_tokens = 90};
  step.batch.sequences[1].num_evicted_tokens = 64;
  step.batch.sequences[1].num_newly_evicted_tokens = 32;
  step.batch.sequences[4].num_unwritten_tokens = 5;
  const Trace read = read_trace("trace.jsonl", trace_json_lines(trace));
  CHECK(read.steps[0].options.kv_retention == step.options.kv_retention);
  CHECK(read.steps[0].options.activations == ActivationMode::bf16);
  const auto& slices = read.steps[0].batch.sequences;
  REQUIRE(slices.size() == 5);
  CHECK(slices[0].num_evicted_tokens == 0);
  CHECK(slices[1].num_evicted_tokens == 64);
  CHECK(slices[1].num_newly_evicted_tokens == 32);
  CHECK(slices[4].num_unwritten_tokens == 5);
}

TEST_CASE("what became of drafts is kept, and nothing is written of steps without any") {
  Trace trace = small_trace();
  CHECK_THAT(trace_json_lines(trace), !ContainsSubstring("draft"));
  DraftTree tree;
  tree.nodes = {{.token = 1}, {.token = 2, .rank = 1}, {.token = 3, .parent = 1}};
  trace.steps[1].drafts.add(tree, {.tokens = {2, 9}, .path = {1}});
  trace.steps[1].drafts.add(tree, {.tokens = {1, 4}, .path = {0}});
  trace.steps[1].drafting = Seconds(0.25);
  const std::string text = trace_json_lines(trace);
  CHECK_THAT(text, ContainsSubstring(R"("by_position":[[2,2],[1,0]],"by_rank":[[3,1],[1,1]])"));
  const Trace read = read_trace("t.jsonl", text);
  CHECK(read.steps[0].drafts == DraftCounts());
  CHECK(read.steps[1].drafts == trace.steps[1].drafts);
  CHECK(read.steps[1].drafting == Seconds(0.25));
  std::string wrong = text;
  wrong.replace(wrong.find("[2,2]"), 5, "[2,3]");
  CHECK_THAT(refusal(wrong), ContainsSubstring("by_position: must be pairs of [tested, accepted]"));
}

TEST_CASE("what was guessed is kept, and steps without guesses do not mention it") {
  Trace trace = small_trace();
  CHECK_THAT(trace_json_lines(trace), !ContainsSubstring("num_draft_tokens") && !ContainsSubstring("num_tree_tokens"));
  TraceStep& step = trace.steps[0];
  leave_out_ops(step);
  SequenceSlice& chain = step.batch.sequences[1];
  SequenceSlice& tree = step.batch.sequences[2];
  chain.num_new_tokens = 4, chain.num_draft_tokens = 3;
  tree.num_new_tokens = 7, tree.num_draft_tokens = 6, tree.num_tree_tokens = 9;
  const Trace read = read_trace("trace.jsonl", trace_json_lines(trace));
  const auto& slices = read.steps[0].batch.sequences;
  REQUIRE(slices.size() == 5);
  CHECK((slices[0].num_draft_tokens == 0 && slices[0].num_tree_tokens == 0));
  CHECK((slices[1].num_new_tokens == 4 && slices[1].num_draft_tokens == 3 && slices[1].num_tree_tokens == 0));
  tree.num_tree_tokens = 5;
  CHECK_THAT(refusal(trace_json_lines(trace)), ContainsSubstring("num_tree_tokens: must be of a decode"));
  CHECK((slices[2].num_new_tokens == 7 && slices[2].num_draft_tokens == 6 && slices[2].num_tree_tokens == 9));
}

TEST_CASE("an empty trace has a header and no steps") {
  Trace trace;
  trace.header.machine = "m";
  CHECK(read_trace("t.jsonl", trace_json_lines(trace)).steps.empty());
}

TEST_CASE("a few lines cannot ask for more memory than the file says") {
  std::string text = changed("\"count\":3", "\"count\":65536");
  text.resize(text.find('\n', text.find('\n') + 1) + 1);  // the header and one step
  const std::string step = text.substr(text.find('\n') + 1);
  for (int line = 3; line <= 130; ++line) text += step;
  CHECK_THAT(refusal(text), ContainsSubstring("t.jsonl:130: its steps have more than 8388608 sequences"));
}

TEST_CASE("a wrong trace is refused with its line") {
  CHECK_THAT(refusal(""), ContainsSubstring("t.jsonl: is empty"));
  CHECK_THAT(refusal("{\"schema\": \"dculab/machine/1\"}\n"), ContainsSubstring("t.jsonl:1: schema:"));
  CHECK_THAT(refusal("[1]\n"), ContainsSubstring("t.jsonl:1: must be a map"));
  CHECK_THAT(refusal(changed("\"seconds\":", "\"secs\":")), ContainsSubstring("t.jsonl:2: seconds: missing"));
  CHECK_THAT(refusal(changed("\"seconds\":", "\"secs\":")), ContainsSubstring("t.jsonl:2: secs: unknown key"));
  CHECK_THAT(refusal(changed("\"block_size\":32", "\"block_size\":33")), ContainsSubstring("power of two"));
  CHECK_THAT(refusal(changed("\"num_key_value_heads\":2", "\"num_key_value_heads\":3")),
             ContainsSubstring("not a multiple"));
  CHECK_THAT(refusal(changed("\"seconds\":0.3333333333333333", "\"seconds\":0")), ContainsSubstring("out of range"));
  CHECK_THAT(refusal(changed("\"seconds\":0.3333333333333333", "\"seconds\":1e999")), ContainsSubstring("t.jsonl:2"));
  CHECK_THAT(refusal(changed("\"count\":3", "\"count\":99999999")), ContainsSubstring("out of range"));
  CHECK_THAT(refusal(changed("\"repeats\":7", "\"repeats\":7,\"repeats\":8")), ContainsSubstring("stands twice"));
  CHECK_THAT(refusal(changed("gptq-int4-g32", "gptq-f9")), ContainsSubstring("not a weight format"));
  CHECK_THAT(refusal(changed("\"qkv_proj\"", "\"q_proj\"")), ContainsSubstring("t.jsonl:2: ops: must be those"));
  const std::string text = trace_json_lines(small_trace());
  CHECK_THAT(refusal(text.substr(0, text.size() - 20)), ContainsSubstring("t.jsonl:3:"));
}

}  // namespace
}  // namespace dculab::config
