// From a question to ranked causes: what physics forbids, what needs no explanation, and what two measurements tell
// apart that one does not.
#include "study/diagnose/diagnosis.hpp"

#include <algorithm>
#include <cmath>

#include "config/number_text.hpp"
#include "core/error.hpp"
#include "study/diagnose/candidate.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

DiagnosisQuestion llama_on(const std::string& machine, const std::string& stack) {
  DiagnosisQuestion question;
  question.step.model = "llama-3-8b";
  question.step.machine = machine;
  question.step.stack = stack;
  question.step.context = 1000;
  return question;
}

Seconds predicted(const DiagnosisQuestion& question, int batch, int context) {
  return step_facts(question, batch, context).predicted;
}

std::string at(int context, double seconds) {
  return std::to_string(context) + "=" + config::exact_number(1000 * seconds) + "ms";
}

const Explanation& of(const Diagnosis& diagnosis, Cause cause) {
  const auto found = std::ranges::find(diagnosis.explanations, cause, &Explanation::cause);
  REQUIRE(found != diagnosis.explanations.end());
  return *found;
}

TEST_CASE("a step that takes what is predicted needs no explanation") {
  DiagnosisQuestion question = llama_on("mi210", "vllm");
  question.tokens_per_second = 1 / predicted(question, 1, 1000).value();
  const Diagnosis diagnosis = diagnose(question);
  CHECK(diagnosis.pace == Pace::as_predicted);
  CHECK(diagnosis.explanations.empty());
  CHECK(diagnosis.at().floor < diagnosis.at().predicted);
}

TEST_CASE("what physics forbids is refused, with what to check") {
  DiagnosisQuestion question = llama_on("mi210", "vllm");
  question.tokens_per_second = 1.01 / step_facts(question, 1, 1000).floor.value();
  CHECK_THROWS_WITH(diagnose(question), ContainsSubstring("cannot be: mi210 needs at least") &&
                                            ContainsSubstring("--tensor-parallel-size"));
  question.tokens_per_second *= 0.98;
  CHECK(diagnose(question).pace != Pace::slower);
}

TEST_CASE("a slope is attention's, a constant is not") {
  DiagnosisQuestion question = llama_on("mi210", "vllm");
  const auto measured = [&](double constant, double per_token) {
    DiagnosisQuestion asked = question;
    for (const int context : {500, 1000, 4000})
      asked.at.push_back(at(context, predicted(question, 1, context).value() + constant + per_token * context));
    return diagnose(asked);
  };
  const Diagnosis slope = measured(0, 20e-6);
  CHECK(slope.pace == Pace::slower);
  CHECK(slope.explanations.front().cause == Cause::kv_read_granularity);
  CHECK(slope.explanations.front().verdict == CauseVerdict::likely);
  CHECK(of(slope, Cause::host_per_step).share < 0.05);
  REQUIRE(slope.over_context);
  CHECK(slope.over_context->per_token.value() ==
        Approx(20e-6 + slope.over_context->predicted_per_token.value()).epsilon(0.01));
  const Diagnosis constant = measured(0.04, 0);
  CHECK(of(constant, Cause::kv_read_granularity).share < 0.05);
  CHECK(of(constant, Cause::host_per_step).share > 0.1);
}

TEST_CASE("a cause that cannot add enough is excluded, and says how much it can") {
  DiagnosisQuestion question = llama_on("mi50", "vllm-triton");
  question.tokens_per_second = 1;
  const Diagnosis diagnosis = diagnose(question);
  const Explanation& host = of(diagnosis, Cause::host_per_step);
  CHECK(host.verdict == CauseVerdict::excluded);
  CHECK(host.most == Seconds(50e-3));
  CHECK_THAT(host.evidence, ContainsSubstring("adds at most 50 ms"));
  CHECK(std::ranges::is_sorted(diagnosis.explanations, std::greater<>(), &Explanation::share));
  double shares = diagnosis.unknown;
  for (const Explanation& each : diagnosis.explanations) shares += each.share;
  CHECK(shares < 1.0001);
}

TEST_CASE("act-order counts under tensor parallelism, and where it is not ruled out") {
  DiagnosisQuestion question = llama_on("mi50", "vllm-triton");
  question.step.weights = "gptq-int4";
  question.tensor_parallel_size = 2;
  question.tokens_per_second = 8;
  const double unknown = of(diagnose(question), Cause::act_order).share;
  question.desc_act = "yes";
  CHECK(of(diagnose(question), Cause::act_order).share > 1.5 * unknown);
  const auto has_act_order = [](const Diagnosis& diagnosis) {
    return std::ranges::find(diagnosis.explanations, Cause::act_order, &Explanation::cause) !=
           diagnosis.explanations.end();
  };
  question.desc_act = "no";
  CHECK_FALSE(has_act_order(diagnose(question)));
  question.desc_act = "";
  question.tensor_parallel_size = 0;
  CHECK_FALSE(has_act_order(diagnose(question)));
}

TEST_CASE("a rate of a batch may be that of fewer sequences") {
  DiagnosisQuestion question = llama_on("mi210", "vllm");
  question.step.batch = 32;
  question.tokens_per_second = 2 / predicted(question, 2, 1000).value();
  const Diagnosis diagnosis = diagnose(question);
  const Explanation& fewer = of(diagnosis, Cause::fewer_sequences);
  CHECK(fewer.share > 0.1);
  CHECK_THAT(fewer.needed, ContainsSubstring("2.0 of 32 sequences at a time"));
}

TEST_CASE("a slow prompt may be one without matrix cores") {
  DiagnosisQuestion question = llama_on("mi210", "vllm");
  question.step.phase = "prefill";
  question.prefill_tokens_per_second = 1000;
  const Diagnosis diagnosis = diagnose(question);
  CHECK(diagnosis.pace == Pace::slower);
  CHECK(of(diagnosis, Cause::no_matrix_cores).most > Seconds{});
  CHECK_THAT(of(diagnosis, Cause::slow_products).needed, ContainsSubstring("of the arithmetic peak"));
  CHECK_FALSE(diagnosis.over_context);
}

TEST_CASE("a checkpoint of another method than GPTQ has no act-order") {
  DiagnosisQuestion question = llama_on("h200", "sglang");
  question.step.model = "deepseek-v3";  // FP8
  question.tensor_parallel_size = 8;
  question.tokens_per_second = 10;
  const Diagnosis diagnosis = diagnose(question);
  CHECK(diagnosis.pace == Pace::slower);
  CHECK(std::ranges::find(diagnosis.explanations, Cause::act_order, &Explanation::cause) ==
        diagnosis.explanations.end());
  CHECK(of(diagnosis, Cause::slow_exchange).most > Seconds{});
  CHECK(of(diagnosis, Cause::all_experts_read).most > Seconds{});
}

// A script may compute the whole context for each token: then it is a prefill's time, and grows as that does.
TEST_CASE("without a KV cache a step is a prefill") {
  DiagnosisQuestion question = llama_on("mi210", "pytorch");
  for (const int context : {500, 2000}) {
    DiagnosisQuestion prefill = question;
    question.at.push_back(
        at(context, step_facts(prefill, {.phase = Phase::prefill, .context = context}).predicted.value()));
  }
  const Diagnosis diagnosis = diagnose(question);
  CHECK(diagnosis.explanations.front().cause == Cause::no_kv_cache);
}

TEST_CASE("drafts that are rejected make a step yield less") {
  DiagnosisQuestion question = llama_on("h100-sxm", "vllm");
  question.step.model = "qwen3-32b";
  question.step.set = {
      "engine.speculative_config={method: draft_model, model: qwen3-0.6b, num_speculative_tokens: 4, acceptance: "
      "0.75}"};
  const StepFacts facts = step_facts(question, 1, 1000);
  CHECK(facts.tokens > 2);
  question.tpot = config::exact_number(1000 * facts.predicted.value()) + "ms";  // a token a step
  CHECK_THAT(of(diagnose(question), Cause::drafts_rejected).needed,
             ContainsSubstring("tokens a step, predicted with 3.05"));
}

TEST_CASE("the next measurement is one that the leading causes answer differently") {
  DiagnosisQuestion question = llama_on("mi50", "vllm-triton");
  question.tokens_per_second = 4;
  const Diagnosis diagnosis = diagnose(question);
  if (!diagnosis.next) return;  // none tells them apart
  CHECK((diagnosis.next->batch > 1 || diagnosis.next->context > 1000));
  CHECK(std::abs(std::log(diagnosis.next->with_first / diagnosis.next->with_second)) > 0.25);
}

// Every candidate of every phase adds nothing at no amount, and never less for more.
TEST_CASE("amounts add up") {
  for (const char* model : {"llama-3-8b", "qwen3-30b-a3b", "deepseek-v2-lite"}) {
    INFO(model);
    for (const char* phase : {"decode", "prefill"}) {
      DiagnosisQuestion question = llama_on("mi300x", "vllm");
      question.step.model = model;
      const std::vector<StepFacts> steps{step_facts(
          question, {.phase = phase == std::string("decode") ? Phase::decode : Phase::prefill, .context = 700})};
      for (const CauseCandidate& candidate : cause_candidates({question, steps})) {
        INFO(name(candidate.cause));
        CHECK(candidate.least > 0);
        CHECK(candidate.most >= candidate.least);
        CHECK(candidate.extra(steps.front(), 0) == Seconds{});
        CHECK(candidate.extra(steps.front(), candidate.least) <= candidate.extra(steps.front(), candidate.most));
        CHECK_FALSE(candidate.figure(steps.front(), candidate.most).empty());
        CHECK_FALSE(what_to_try(candidate.cause, steps.front()).empty());
      }
    }
  }
}

TEST_CASE("the verdict is about a slower step where there is one") {
  DiagnosisQuestion question = llama_on("mi50", "vllm-triton");
  const StepFacts small = step_facts(question, 1, 500), large = step_facts(question, 64, 500);
  const auto at_batch = [](int batch, Seconds time) {
    return std::to_string(batch) + "x500=" + config::exact_number(1000 * time.value()) + "ms";
  };
  // A large step inside its interval has a larger gap than a small one that is too slow.
  question.at = {at_batch(64, 1.05 * large.predicted), at_batch(1, 5 * small.predicted)};
  Diagnosis diagnosis = diagnose(question);
  CHECK(diagnosis.pace == Pace::slower);
  CHECK(diagnosis.at().asked.batch == 1);
  const Seconds early = 0.98 * large.prediction.confidence.low;
  REQUIRE(early > large.floor);
  question.at = {at_batch(64, early), at_batch(1, 5 * small.predicted)};
  diagnosis = diagnose(question);
  CHECK(diagnosis.pace == Pace::slower);
  CHECK(pace_of(diagnosis.steps.front()) == Pace::faster);
  question.at = {at_batch(64, early), at_batch(1, small.predicted)};
  diagnosis = diagnose(question);
  CHECK(diagnosis.pace == Pace::faster);
  CHECK(diagnosis.at().asked.batch == 64);
}

TEST_CASE("a time that falls while its prediction grows is told") {
  DiagnosisQuestion question = llama_on("mi210", "vllm");
  question.at = {"128=90ms", "2048=30ms", "8x2048=20ms"};
  const auto warnings = diagnose(question).warnings;
  REQUIRE(warnings.size() == 2);
  CHECK_THAT(warnings[0], ContainsSubstring("gets faster with context, 90 ms at batch 1, context 128 and 30 ms"));
  CHECK_THAT(warnings[1], ContainsSubstring("gets faster with batch, 30 ms at batch 1, context 2048 and 20 ms"));
  question.at = {"128=30ms", "2048=29ms"};  // noise
  CHECK(diagnose(question).warnings.empty());
}

TEST_CASE("act-order of weights that have no groups is refused") {
  DiagnosisQuestion question = llama_on("mi210", "vllm");
  question.tpot = "40ms";
  question.desc_act = "yes";
  CHECK_THROWS_WITH(diagnose(question), ContainsSubstring("--desc-act: is of GPTQ checkpoints"));
  question.step.weights = "gptq-int4";
  CHECK_THROWS_WITH(diagnose(question), ContainsSubstring("--desc-act: changes nothing on one device"));
  question.tensor_parallel_size = 2;
  CHECK_FALSE(diagnose(question).explanations.empty());
}

TEST_CASE("a part below what is known of a step is none") {
  StepFacts facts;
  facts.predicted = Seconds(0.01);
  CHECK(facts.rounded(Seconds(6.53e-14)) == Seconds{});
  CHECK(facts.rounded(Seconds(2e-6)) == Seconds(2e-6));
}

}  // namespace
}  // namespace dculab::study
