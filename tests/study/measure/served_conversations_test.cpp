// Conversations that the engine serves, and their figures. No time is judged.
#include "study/measure/served_conversations.hpp"

#include "core/error.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

const std::string kFile = DCULAB_SOURCE_DIR "/scenarios/workloads/dculab-tiny-sharegpt.json";

RequestStats request_of(double latency, double ttft, double tpot) {
  RequestStats request;
  request.latency = Seconds(latency);
  request.ttft = Seconds(ttft);
  request.tpot = Seconds(tpot);
  return request;
}

TEST_CASE("the papers' figures follow from what each request took") {
  ServingReport report;
  report.requests = {request_of(1, 0.3, 0.02), request_of(2, 0.1, 0.04), request_of(3, 0.2, 0.01)};
  report.duration = Seconds(4);
  report.num_prompt_tokens = 30;
  report.num_generated_tokens = 10;
  const ConversationFigures figures = conversation_figures(report);
  CHECK(figures.latency_sum == Seconds(6));
  CHECK(figures.latency_mean == Seconds(2));
  CHECK(figures.requests_per_second == 0.75);
  CHECK(figures.tokens_per_second == 10);
  CHECK(figures.generated_tokens_per_second == 2.5);
  CHECK(figures.ttft_median == Seconds(0.2));
  CHECK(figures.tpot_median == Seconds(0.02));
}

ConversationQuestion small_question() {
  ConversationVariant variant{"f16", {}};
  variant.options.num_threads = 2;
  return {.file = kFile,
          .num_prompts = 3,
          .seed = 3,
          .model = "dculab-tiny",
          .random_weights = "",
          .speculative_model = "",
          .variants = {variant}};
}

TEST_CASE("one engine and two replicas generate as many tokens of the same conversations") {
  ConversationQuestion question = small_question();
  double last = 0;
  const engine::BenchProgress progress = [&last](const std::string&, double share) { last = share; };
  const ConversationAnswer one = serve_conversations(question, progress);
  CHECK(last == Approx(1));
  question.replicas.data_parallel_size = 2;
  const ConversationAnswer two = serve_conversations(question, progress);
  REQUIRE(one.rows.size() == 1);
  REQUIRE(two.rows.size() == 1);
  CHECK(one.rows[0].kv_cache_dtype == "f16");
  CHECK(one.rows[0].block_size == question.variants[0].options.engine.block_size);
  CHECK(one.rows[0].report.requests.size() == 3);
  CHECK(two.rows[0].report.requests.size() == 3);
  CHECK(two.rows[0].report.num_prompt_tokens == one.rows[0].report.num_prompt_tokens);
  CHECK(two.rows[0].report.num_generated_tokens == one.rows[0].report.num_generated_tokens);
  CHECK(one.rows[0].experts.is_empty());
  CHECK_FALSE(one.device.empty());
  CHECK_FALSE(one.build.empty());
}

TEST_CASE("activations that do not go with the model, and files without conversations, are refused") {
  ConversationQuestion question = small_question();
  question.variants.front().options.engine.activations = ActivationMode::int8;
  CHECK_THROWS_WITH(serve_conversations(question, [](const std::string&, double) {}),
                    ContainsSubstring("--activations int8"));
  question.file = kFile + ".none";
  CHECK_THROWS_WITH(serve_conversations(question, [](const std::string&, double) {}), ContainsSubstring(".none"));
}

}  // namespace
}  // namespace dculab::study
