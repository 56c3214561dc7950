// What is recommended, as a library decides it; tests/cli/recommend_test.cpp holds what the command shows.
#include "study/decide/serving_recommendation.hpp"

#include <algorithm>
#include <string>

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

TEST_CASE("contexts are cut where sequences and heads do not fill the device") {
  // 60 compute units, 32 heads in groups of 4: a sequence has 8 workgroups.
  CHECK(partition_that_fills(64, 32, 4, 4096, 60) == 0);     // 512 workgroups for 240 places
  CHECK(partition_that_fills(1, 32, 4, 4096, 60) == 256);    // 30 partitions would be shorter than 256 tokens
  CHECK(partition_that_fills(1, 32, 4, 32768, 60) == 1280);  // 1093 tokens, rounded up to 256s
  CHECK(partition_that_fills(1, 32, 4, 200, 60) == 0);
  CHECK(partition_that_fills(1, 32, 4, 257, 60) == 256);
}

TEST_CASE("every decision names its choice among its candidates, as fast as the fastest within its tie") {
  const Recommendation found = recommend_serving(question(""), "z100");
  REQUIRE(found.decisions.size() == 4);
  for (const Decision& decision : found.decisions) {
    INFO(decision.key);
    REQUIRE(decision.verdict.chosen < decision.candidates.size());
    REQUIRE(decision.evaluated.size() == decision.candidates.size());
    const double most = std::ranges::max(decision.evaluated, {}, &Evaluated::figure).figure;
    const double tie = std::max(decision.preference.resolution, decision.preference.given_up);
    CHECK(decision.evaluated[decision.verdict.chosen].figure * (1 + tie) >= most);
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
  for (const Candidate& each : found.kv_heads.candidates) CHECK(each.setting.kv_heads > 0);
  for (const StackChoice& choice : found.stacks)
    if (choice.limits.stack.split == sim::Split::layers) CHECK_FALSE(choice.best.has_value());
}

// 13.5 of an MI50's 14.4 GiB are Llama-2-7B's weights: some 3000 tokens of KV cache are left, which requests of many
// lengths share. Serving them is the only judge of free slots and preemptions, of `simulate` as here.
TEST_CASE("where memory is short, block sizes are judged by serving the requests: 16 stays, large ones cost") {
  RecommendationQuestion mi50;
  mi50.scenario = config::read_scenario(
      "question",
      config::parse_yaml("question",
                         "schema: dculab/scenario/1\nquestion: Which?\nmodel: llama-2-7b\n"
                         "machine: mi50\nweights: f16\n"
                         "workload: {requests: 64,\n"
                         "  prompt_tokens: {distribution: lognormal, median: 300, sigma: 0.9, min: 16, max: 2048},\n"
                         "  output_tokens: {distribution: lognormal, median: 150, sigma: 0.7, min: 8, max: 512}}\n"));
  mi50.kv_cache_dtype = Dtype::f16;
  const Recommendation found = recommend_serving(mi50, "mi50");
  const auto blocks = std::ranges::find(found.decisions, "kv_cache.block_size", &Decision::key);
  REQUIRE(blocks != found.decisions.end());
  CHECK(blocks->by_requests);
  CHECK(blocks->choice().value == "16");
  const auto of = [&](const std::string& value) {
    const auto place = std::ranges::find(blocks->candidates, value, &Candidate::value) - blocks->candidates.begin();
    return *blocks->verdict.costs[static_cast<std::size_t>(place)];
  };
  CHECK(of("16").tied);
  CHECK_FALSE(of("128").tied);
  CHECK(of("128").value > 0.04);
  CHECK(of("256").value > of("128").value);
}

// Limits are multiples of 8: 95 % of the highest rate are reached with one batch by one block size and with the next by
// another, which is 1 to 2 % of speed and says nothing of the blocks.
TEST_CASE("block sizes are compared with equally many sequences at a time") {
  RecommendationQuestion usual = question("");
  usual.scenario.workload.served.prompt.center = 1024;
  usual.scenario.workload.served.output.center = 256;
  const Recommendation found = recommend_serving(usual, "k100-ai");
  const auto blocks = std::ranges::find(found.decisions, "kv_cache.block_size", &Decision::key);
  const auto dtype = std::ranges::find(found.decisions, "kv_cache.dtype", &Decision::key);
  REQUIRE(blocks != found.decisions.end());
  REQUIRE_FALSE(blocks->by_requests);
  const int batch = dtype->choice().served.batch;
  CHECK(std::ranges::any_of(blocks->candidates, [&](const Candidate& each) { return each.served.batch != batch; }));
  for (std::size_t index = 0; index < blocks->candidates.size(); ++index)
    CHECK(blocks->evaluated[index].figure ==
          Approx(sim::served_rate(found.serving.machine, found.serving, blocks->candidates[index].setting, batch)));
}

TEST_CASE("accuracy that a model's name asks for decides KV heads, its own stay where none is named") {
  RecommendationQuestion named = question("accuracy: {model: t5-xxl}\n");
  const Recommendation found = recommend_serving(named, "z100");
  REQUIRE(found.accuracy);
  CHECK(found.accuracy->metric == "average of 7 tasks");
  CHECK(found.setting.kv_heads == 4);  // group size 8, as 8 of T5-XXL's 64; groups of 64 there are none
  CHECK(std::string(found.kv_heads_by()) == "accuracy");
  CHECK(std::string(recommend_serving(question(""), "z100").kv_heads_by()) == "own");
  CHECK_THROWS_WITH(recommend_serving(question("accuracy: {model: nosuch}\n"), "z100"),
                    ContainsSubstring("has no accuracy of 'nosuch'; it has that of") && ContainsSubstring("t5-xxl"));
  CHECK_THROWS_WITH(recommend_serving(question("accuracy: {model: deepseek-7b}\n"), "z100"),
                    ContainsSubstring("does not say how many query heads deepseek-7b has"));
}

TEST_CASE("a service level that a single sequence misses cannot be served") {
  CHECK_THROWS_WITH(recommend_serving(question("slo: {tpot: 10 us}\n"), "z100"),
                    ContainsSubstring("a single sequence already takes longer a token than slo.tpot"));
}

}  // namespace
}  // namespace dculab::study
