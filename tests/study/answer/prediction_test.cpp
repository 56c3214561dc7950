// One step on one machine: what its parts come to, and what is said against them.
#include "study/answer/prediction.hpp"

#include "config/scenario_document.hpp"
#include "core/error.hpp"
#include "model/plan_step.hpp"
#include "study/scenario/resolve.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

Prediction prediction_of(const std::string& text) {
  return predict(config::read_scenario(
      "s.yaml", config::parse_value("s.yaml", "schema: dculab/scenario/1\nquestion: q\n" + text)));
}

const std::string kDecodeOf16 = "workload: {phase: decode, batch: 16, context_tokens: 2048}\n";
const std::string kLlama = "model: llama-3-8b\nmachine: z100\n";
const std::string kInF16 = kLlama + "weights: f16\n" + kDecodeOf16;

TEST_CASE("a predicted step is its ops and the host's time, inside its interval") {
  for (const char* phase : {"decode", "prefill"}) {
    CAPTURE(phase);
    const Prediction found =
        prediction_of(kLlama + "workload: {phase: " + phase + ", batch: 2, context_tokens: 500}\n");
    REQUIRE(found.price.ops.size() == found.plan.ops.size());
    Seconds sum = found.price.host;
    for (const sim::OpPrice& op : found.price.ops) sum += op.all_executions();
    CHECK(sum.value() == Approx(found.price.seconds.value()));
    CHECK(found.confidence.low < found.price.seconds);
    CHECK(found.confidence.high > found.price.seconds);
    CHECK(found.plan.batch.sequences.size() == 2);
    CHECK(found.plan.batch.sequences.front().context_tokens() == 500);
  }
}

TEST_CASE("a step is that of the machine and the model as the scenario has them") {
  const Prediction found = prediction_of(
      "model: {name: llama-3-8b, num_key_value_heads: 4}\nmachine: z100\nweights: f16\n"
      "kv_cache: {block_size: 64}\n" +
      kDecodeOf16);
  CHECK(found.machine.name == "z100");
  CHECK(found.options.block_size == 64);
  CHECK(found.whole.heads().num_key_value_heads == 4);
  CHECK(found.model.tensor_parallel_size == 1);
  const sim::Machine machine = resolve_machine("z100");
  CHECK(sim::price_step(machine, plan_step(found.model, found.options, found.plan.batch)).seconds ==
        found.price.seconds);
  const sim::Capacity room = sim::capacity(machine, found.model, found.options, 2048);
  CHECK(found.capacity.max_sequences == room.max_sequences);
  CHECK(found.warnings.empty());
  CHECK_FALSE(found.drafts);
  CHECK_FALSE(found.micro_batches);
  REQUIRE_FALSE(found.input_sensitivities.empty());
  for (std::size_t index = 1; index < found.input_sensitivities.size(); ++index)
    CHECK(found.input_sensitivities[index].change <= found.input_sensitivities[index - 1].change);
}

TEST_CASE("each of several devices has a part of the model, and exchanges are in the step") {
  const Prediction one = prediction_of(kInF16),
                   four = prediction_of(kInF16 + "deployment: {tensor_parallel_size: 4}\n");
  CHECK(four.whole == one.whole);
  CHECK(four.model.tensor_parallel_size == 4);
  CHECK(four.model.heads().num_key_value_heads * 4 == one.model.heads().num_key_value_heads);
  CHECK(sim::exchange_time(one.price) == Seconds());
  CHECK(sim::exchange_time(four.price) > Seconds());
  CHECK(four.capacity.weights < one.capacity.weights);
}

TEST_CASE("what does not fit in memory is predicted, with a warning") {
  const Prediction full =
      prediction_of(kLlama + "weights: f16\nworkload: {phase: decode, batch: 400, context_tokens: 2048}\n");
  CHECK(full.capacity.max_sequences < 400);
  REQUIRE(full.warnings.size() == 1);
  CHECK_THAT(full.warnings.front(), ContainsSubstring("this batch does not fit in the machine's memory; the time is"));
  const Prediction none = prediction_of("model: llama-13b\nmachine: mi50\n" + kDecodeOf16);
  CHECK(none.capacity.num_blocks == 0);
  REQUIRE_FALSE(none.warnings.empty());
  CHECK_THAT(none.warnings.back(),
             ContainsSubstring("llama-13b does not fit: 24.2 GiB of weights leave no room for a KV block"));
}

TEST_CASE("drafts are judged where a decode verifies them") {
  const std::string drafts =
      "engine:\n  speculative_config: {method: ngram, num_speculative_tokens: 2, acceptance: 0.7}\n";
  const Prediction decode = prediction_of(kInF16 + drafts);
  REQUIRE(decode.drafts);
  CHECK(decode.drafts->batch == 16);
  CHECK(decode.drafts->shape == chain_shape(2));
  CHECK(decode.drafts->tokens == Approx(1 + 0.7 + 0.49));
  CHECK(decode.drafts->times.verify.value() == Approx(decode.price.seconds.value()));
  CHECK(decode.drafts->times.plain.value() == Approx(prediction_of(kInF16).price.seconds.value()));
  CHECK_FALSE(prediction_of(kLlama + "workload: {phase: prefill, batch: 1, context_tokens: 100}\n" + drafts).drafts);
}

TEST_CASE("requests are not a step, and are refused") {
  CHECK_THROWS_WITH(prediction_of(kLlama + "workload: {requests: 8, prompt_tokens: 100, output_tokens: 20}\n"),
                    ContainsSubstring("requests are served by `dculab simulate`"));
}

}  // namespace
}  // namespace dculab::study
