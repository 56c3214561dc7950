// What models are judged by: in which ways they are run, what is refused, and a small judgement.
#include "study/measure/evaluation.hpp"

#include "core/error.hpp"
#include "study/measure/evaluation_material.hpp"
#include "tests/files/temporary_folder.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

EvaluationQuestion evaluation_question(const std::string& text_file = "a.txt") {
  EvaluationQuestion question;
  question.models = {"dculab-tiny"};
  question.tasks.text_file = text_file;
  question.tasks.decode.steps = 0;
  question.generator.num_threads = 2;
  return question;
}

TEST_CASE("a model has a row for each way to run it that its weights go with") {
  EvaluationQuestion question = evaluation_question();
  question.kv_cache_dtypes = {Dtype::f16, Dtype::f32};
  question.activations = {ActivationMode::exact, ActivationMode::int8, ActivationMode::bf16};
  const std::vector<EvaluationRow> rows = evaluation_rows(question);
  REQUIRE(rows.size() == 4);  // BF16 weights are not quantized
  CHECK(rows[0].activations == ActivationMode::exact);
  CHECK(rows[0].kv_cache_dtype == Dtype::f16);
  CHECK(rows[1].kv_cache_dtype == Dtype::f32);
  CHECK(rows[3].activations == ActivationMode::bf16);
  question.activations = {ActivationMode::int8};
  CHECK(evaluation_rows(question).front().activations == ActivationMode::exact);
}

TEST_CASE("what cannot be judged is refused before a model is loaded") {
  const auto refused = [](const EvaluationQuestion& question, const std::string& why) {
    CHECK_THROWS_WITH(refuse_unjudgeable(question, evaluation_rows(question)), ContainsSubstring(why));
  };
  refused(evaluation_question(""), "there is nothing to judge");
  EvaluationQuestion compares = evaluation_question();
  compares.tasks.num_prompts = 3;
  refused(compares, "add what drafts");
  compares.drafter = DraftChoice{{.method = SpeculativeMethod::ngram,
                                  .shape = chain_shape(2),
                                  .rejection_sample_method = RejectionSampleMethod::synthetic},
                                 ""};
  refused(compares, "synthetic gives other texts");
  EvaluationQuestion against = evaluation_question("");
  against.tasks.question_files = {"q.jsonl"};
  against.tasks.reference = "dculab-tiny";
  refused(against, "predictions are compared over a text");
  EvaluationQuestion dropping = evaluation_question();
  dropping.retentions = {{.policy = RetentionPolicy::window, .window_tokens = 16}};
  refused(dropping, "a cache that drops tokens is judged token by token; add --stream");
  dropping.tasks.mode = engine::ScoringMode::streamed;
  CHECK_NOTHROW(refuse_unjudgeable(dropping, evaluation_rows(dropping)));
  dropping.retentions = {{.policy = RetentionPolicy::sinks}};
  refused(dropping, "--kv-retention sinks: give --window-tokens");
  dropping.retentions = {{.policy = RetentionPolicy::critical_blocks}};
  refused(dropping, "--kv-retention critical-blocks: give --kv-budget");
}

TEST_CASE("prompts to go on after are pieces of the text, or else questions of the first file") {
  EvaluationMaterial material;
  material.items.resize(2);
  for (const char* prompt : {"first", "second", "third"}) material.items[0].emplace_back().prompt = prompt;
  material.items[1].emplace_back().prompt = "other file";
  CHECK(prompts_of(material, 2) == std::vector<std::string>{"first", "second"});
  material.text = "Once upon a time there was a fox. It lived in the forest.";
  for (const std::string& prompt : prompts_of(material, 2)) CHECK(material.text.find(prompt) != std::string::npos);
}

TEST_CASE("a text is judged against a reference, with the window and the contexts that were left open") {
  const files::test::TemporaryFolder folder;
  std::string text;
  for (int line = 0; line < 12; ++line) text += "Once upon a time there were " + std::to_string(line) + " foxes.\n";
  EvaluationQuestion question = evaluation_question(folder.write("text.txt", text));
  question.tasks.reference = "dculab-tiny";
  question.kv_cache_dtypes = {Dtype::f32};
  question.max_position_embeddings = 2000;
  const EvaluationAnswer answer = evaluate_models(question, [](const std::string&, double) {});
  CHECK(answer.tasks.context == 1024);
  CHECK(answer.tasks.window == 2000);
  CHECK(answer.tasks.decode.context == 512);
  REQUIRE(answer.rows.size() == 1);
  const EvaluationRow& row = answer.rows.front();
  REQUIRE(row.text);
  CHECK(row.text->loss.perplexity() > 1);
  CHECK(row.text->agreement->top1() == 1);
  CHECK(row.num_key_value_heads == 8);
  CHECK(row.kv_bytes_per_sequence == 512 * row.kv_bytes_per_token);
  CHECK_FALSE(row.decode_step);
  CHECK_FALSE(row.speculation);
}

TEST_CASE("drafts that look tokens up change no text") {
  const files::test::TemporaryFolder folder;
  EvaluationQuestion question =
      evaluation_question(folder.write("text.txt", "Once upon a time there was a fox, a red fox.\n"));
  question.drafter = DraftChoice{{.method = SpeculativeMethod::ngram, .shape = chain_shape(2)}, ""};
  question.tasks.num_prompts = 2;
  question.tasks.max_tokens = 4;
  const EvaluationAnswer answer = evaluate_models(question, [](const std::string&, double) {});
  REQUIRE(answer.rows.front().speculation);
  CHECK(answer.rows.front().speculation->num_identical == answer.rows.front().speculation->num_texts);
  EvaluationQuestion short_text = evaluation_question(folder.write("short.txt", "a"));
  CHECK_THROWS_WITH(evaluate_models(short_text, [](const std::string&, double) {}),
                    ContainsSubstring("has fewer than two tokens"));
}

}  // namespace
}  // namespace dculab::study
