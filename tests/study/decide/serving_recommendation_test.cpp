// What is recommended, as a library decides it; tests/cli/recommend_test.cpp holds what the command shows.
#include "study/decide/serving_recommendation.hpp"

#include "config/yaml_text.hpp"
#include "core/error.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

RecommendationQuestion question(const std::string& more) {
  RecommendationQuestion question;
  question.scenario = config::read_scenario(
      "question", config::parse_yaml("question",
                                     "schema: dculab/scenario/1\nquestion: Which?\nmodel: llama-3-8b\n"
                                     "machine: z100\nweights: gptq-int4\n"
                                     "workload: {requests: 64, prompt_tokens: 512, output_tokens: 64}\n" +
                                         more));
  return question;
}

TEST_CASE("every decision names its choice among its candidates, the fastest within the tie") {
  const Recommendation found = recommend_serving(question(""), "z100");
  REQUIRE(found.decisions.size() == 4);
  for (const Decision& decision : found.decisions) {
    INFO(decision.key);
    REQUIRE(decision.preferred.chosen < decision.candidates.size());
    const double rate = decision.choice().served.output_tokens_per_second;
    for (const Candidate& each : decision.candidates)
      CHECK(rate * (1 + decision.tie) >= each.served.output_tokens_per_second);
  }
  CHECK(found.setting.kv_heads == 8);  // the model's own
  CHECK(found.served.batch >= 1);
  CHECK(found.confidence.low < found.step);
  CHECK(found.step < found.confidence.high);
}

TEST_CASE("what is given is not decided") {
  RecommendationQuestion given = question("");
  given.block_size = 64;
  given.kv_cache_dtype = Dtype::f16;
  given.sequences = 4;
  const Recommendation found = recommend_serving(given, "z100");
  CHECK(found.setting.block_size == 64);
  CHECK(found.setting.kv_cache_dtype == Dtype::f16);
  CHECK(found.served.batch <= 4);
}

TEST_CASE("settings of devices that share the model are of its parts") {
  RecommendationQuestion two = question("deployment: {tensor_parallel_size: 2}\n");
  two.any_kv_heads = true;
  const Recommendation found = recommend_serving(two, "z100");
  CHECK(found.served.most > recommend_serving(question(""), "z100").served.most);
  for (const Candidate& each : found.kv_heads) CHECK(each.setting.kv_heads > 0);
  for (const StackChoice& choice : found.stacks)
    if (choice.limits.stack.split == sim::Split::layers) CHECK_FALSE(choice.best.has_value());
}

TEST_CASE("a service level that a single sequence misses cannot be served") {
  CHECK_THROWS_WITH(recommend_serving(question("slo: {tpot: 10 us}\n"), "z100"),
                    ContainsSubstring("a single sequence already takes longer a token than slo.tpot"));
}

}  // namespace
}  // namespace dculab::study
