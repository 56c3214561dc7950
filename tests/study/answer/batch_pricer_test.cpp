// Steps whose sequences somebody else schedules.
#include "study/answer/batch_pricer.hpp"

#include <vector>

#include "core/cancellation.hpp"
#include "core/error.hpp"
#include "study/answer/prediction.hpp"
#include "study/scenario/step_question.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

StepQuestion llama_on(const std::string& machine) {
  StepQuestion question;
  question.model = "llama-3-8b";
  question.machine = machine;
  return question;
}

TEST_CASE("a batch of uniform sequences is the step that predict prices") {
  StepQuestion question = llama_on("k100-ai");
  question.stack = "vllm";
  question.batch = 3;
  question.context = 700;
  BatchPricer pricer(step_scenario(question));
  const std::vector<SequenceTokens> decodes(3, {1, 699}), prefills(3, {700, 0});
  CHECK(pricer.time(decodes) == predict(step_scenario(question)).price.seconds);
  question.phase = "prefill";
  CHECK(pricer.time(prefills) == predict(step_scenario(question)).price.seconds);
}

TEST_CASE("the order of sequences of one kind and another does not matter, their lengths do") {
  BatchPricer pricer(step_scenario(llama_on("z100")));
  const std::vector<SequenceTokens> one_way{{1, 500}, {64, 100}}, other_way{{64, 100}, {1, 500}},
      longer{{1, 900}, {64, 100}};
  CHECK(pricer.time(one_way) == pricer.time(other_way));
  CHECK(pricer.time(one_way) < pricer.time(longer));
  CHECK(pricer.time({}) == Seconds{});
}

TEST_CASE("a batch as the engine makes it costs the same, and without logits less") {
  BatchPricer pricer(step_scenario(llama_on("x86-server")));
  const std::vector<SequenceTokens> tokens{{32, 0}, {1, 500}};
  Batch batch;
  batch.sequences = {{.phase = Phase::prefill, .num_computed_tokens = 0, .num_new_tokens = 32},
                     {.id = 1, .phase = Phase::decode, .num_computed_tokens = 500}};
  CHECK(pricer.time_of(batch) == pricer.time(tokens));
  batch.sequences[0].num_logits = 0;  // not the last chunk of its prompt: one row of logits less
  CHECK(pricer.time_of(batch) < pricer.time(tokens));
}

TEST_CASE("sequences that the model cannot have are refused") {
  BatchPricer pricer(step_scenario(llama_on("z100")));
  const std::vector<SequenceTokens> too_long{{1, 8192}}, nothing_new{{0, 5}}, negative{{1, -1}};
  CHECK_THROWS_WITH(pricer.time(too_long), ContainsSubstring("max_position_embeddings = 8192"));
  CHECK_THROWS_AS(pricer.time(nothing_new), InputError);
  CHECK_THROWS_AS(pricer.time(negative), InputError);
}

TEST_CASE("pricing can be cancelled") {
  BatchPricer pricer(step_scenario(llama_on("z100")));
  const std::vector<SequenceTokens> decode{{1, 10}};
  Cancellation cancellation;
  const CancelledBy whole(&cancellation);
  CHECK(pricer.time(decode) > Seconds{});
  cancellation.cancel();
  CHECK_THROWS_AS(pricer.time(decode), Cancelled);
}

}  // namespace
}  // namespace dculab::study
