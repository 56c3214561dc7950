#include "config/trace_file.hpp"

#include <string>

#include "core/error.hpp"
#include "tests/config/small_trace.hpp"
#include "tests/support/catch.hpp"

namespace dculab::config {
namespace {

std::string refusal_of_trace(const std::string& text) {
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
  CHECK_THAT(refusal_of_trace(changed(now, now + "," + then)), ContainsSubstring("t.jsonl:2: batch.needs_logits"));
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
  CHECK_THAT(refusal_of_trace(wrong), ContainsSubstring("by_position: must be pairs of [tested, accepted]"));
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
  CHECK_THAT(refusal_of_trace(trace_json_lines(trace)), ContainsSubstring("num_tree_tokens: must be of a decode"));
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
  CHECK_THAT(refusal_of_trace(text), ContainsSubstring("t.jsonl:130: its steps have more than 8388608 sequences"));
}

TEST_CASE("a wrong trace is refused with its line") {
  CHECK_THAT(refusal_of_trace(""), ContainsSubstring("t.jsonl: is empty"));
  CHECK_THAT(refusal_of_trace("{\"schema\": \"dculab/machine/1\"}\n"), ContainsSubstring("t.jsonl:1: schema:"));
  CHECK_THAT(refusal_of_trace("[1]\n"), ContainsSubstring("t.jsonl:1: must be a map"));
  CHECK_THAT(refusal_of_trace(changed("\"seconds\":", "\"secs\":")), ContainsSubstring("t.jsonl:2: seconds: missing"));
  CHECK_THAT(refusal_of_trace(changed("\"seconds\":", "\"secs\":")), ContainsSubstring("t.jsonl:2: secs: unknown key"));
  CHECK_THAT(refusal_of_trace(changed("\"block_size\":32", "\"block_size\":33")), ContainsSubstring("power of two"));
  CHECK_THAT(refusal_of_trace(changed("\"num_key_value_heads\":2", "\"num_key_value_heads\":3")),
             ContainsSubstring("not a multiple"));
  CHECK_THAT(refusal_of_trace(changed("\"seconds\":0.3333333333333333", "\"seconds\":0")),
             ContainsSubstring("out of range"));
  CHECK_THAT(refusal_of_trace(changed("\"seconds\":0.3333333333333333", "\"seconds\":1e999")),
             ContainsSubstring("t.jsonl:2"));
  CHECK_THAT(refusal_of_trace(changed("\"count\":3", "\"count\":99999999")), ContainsSubstring("out of range"));
  CHECK_THAT(refusal_of_trace(changed("\"repeats\":7", "\"repeats\":7,\"repeats\":8")),
             ContainsSubstring("stands twice"));
  CHECK_THAT(refusal_of_trace(changed("gptq-int4-g32", "gptq-f9")), ContainsSubstring("not a weight format"));
  CHECK_THAT(refusal_of_trace(changed("\"qkv_proj\"", "\"q_proj\"")),
             ContainsSubstring("t.jsonl:2: ops: must be those"));
  const std::string text = trace_json_lines(small_trace());
  CHECK_THAT(refusal_of_trace(text.substr(0, text.size() - 20)), ContainsSubstring("t.jsonl:3:"));
}

}  // namespace
}  // namespace dculab::config
