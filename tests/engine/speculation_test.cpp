// Speculation on the engine: who drafts, what becomes of drafts, and where they end.
#include <cmath>

#include "model/kv/kv_bytes.hpp"
#include "tests/engine/support/drafting_generators.hpp"
#include "tests/support/catch.hpp"

namespace dculab::engine {

TEST_CASE("a model that drafts for itself is right, whatever becomes of its cache", "[speculation]") {
  std::vector<TextRequest> requests = requests_of(
      {"once upon a time", "a", "the machine counted the words of a story", "small words again and again", "machine"},
      30);
  for (TextRequest& request : requests) request.eos = EosHandling::ignore;
  const auto alone = tokens_of(Generator(kSmall, engine_options()).generate(requests));
  for (const DraftShape& shape : {chain_shape(3), full_tree_shape(std::vector<int>{2, 2})})
    for (const bool tight : {false, true}) {
      GeneratorOptions options = with_draft(engine_options(Dtype::f32, 4), kSmall, shape);
      if (tight) {
        options.kv_cache_memory = 2 * kv_bytes_per_token(read_model_shape(kSmall), Dtype::f32) * 4 * 22;
        options.engine.max_num_batched_tokens = 12;
      }
      const Generation generation = Generator(kSmall, options).generate(requests);
      CHECK(tokens_of(generation) == alone);
      CHECK((generation.report.num_preemptions > 0) == tight);
      const DraftCounts& drafts = generation.report.drafts;
      REQUIRE(drafts.num_drafts > 10);
      for (const DraftCounts::Place& place : drafts.by_depth) CHECK(place.accepted == place.tested);
      CHECK(drafts.by_rank.front().accepted == drafts.num_accepted_tokens);
    }
  // Drawn from p, a guess is accepted with p / p.
  std::vector<TextRequest> sampled = requests;
  for (std::size_t index = 0; index < sampled.size(); ++index)
    sampled[index].sampling = {.temperature = 0.9, .top_p = 0.95, .seed = index};
  for (const DraftShape& shape : {chain_shape(3), full_tree_shape(std::vector<int>{2, 2})}) {
    Generator generator(kSmall, with_draft(engine_options(), kSmall, shape));
    const DraftCounts drafts = generator.generate(sampled).report.drafts;
    REQUIRE(drafts.num_drafts > 10);
    for (const DraftCounts::Place& place : drafts.by_depth) CHECK(place.accepted >= place.tested - 1);
  }
}

TEST_CASE("drafts leave greedy texts as they are on --device host-gpu", "[speculation][gpu]") {
  GeneratorOptions options = engine_options(Dtype::f16, 4);
  options.device.kind = DeviceKind::host_gpu;
  options.engine.activation_dtype = Dtype::f32;
  options.engine.max_num_seqs = 2;
  options.engine.max_num_batched_tokens = 32;
  const std::vector<TextRequest> requests = requests_of({"Once upon", "The dog"}, 6);
  const auto alone = tokens_of(Generator(kDraft, options).generate(requests));
  for (const DraftShape& shape : {chain_shape(3), full_tree_shape(std::vector<int>{2, 2})}) {
    const Generation generation = Generator(kDraft, with_draft(options, kDraft, shape)).generate(requests);
    CHECK(tokens_of(generation) == alone);
    CHECK(generation.report.drafts.num_accepted_tokens > 4);
  }
}

TEST_CASE("n-grams leave sampled texts as they are", "[speculation]") {
  std::vector<TextRequest> requests = story_requests(6, 40);
  for (std::size_t index = 0; index < requests.size(); ++index)
    requests[index].sampling = {.temperature = 0.8, .top_k = 50, .seed = index};
  const auto alone = tokens_of(Generator(kTarget, engine_options()).generate(requests));
  GeneratorOptions options = engine_options();
  options.engine.speculative_config = drafting(SpeculativeMethod::ngram, chain_shape(4));
  const Generation generation = Generator(kTarget, options).generate(requests);
  CHECK(tokens_of(generation) == alone);
  CHECK(generation.report.drafts.num_accepted_tokens > 0);
}

TEST_CASE("samples of a prompt draft for themselves", "[speculation]") {
  TextRequest request{.prompt = "once upon a time", .max_tokens = 20, .sampling = {.temperature = 1.0, .seed = 40}};
  Generator generator(kSmall, with_draft(engine_options(Dtype::f32, 4), kSmall, chain_shape(3)));
  std::vector<TextRequest> requests{request};
  requests[0].n = 3;
  const Generation together = generator.generate(requests);
  for (std::size_t sample = 0; sample < 3; ++sample) {
    TextRequest alone = request;
    alone.sampling.seed = 40 + sample;
    // The first token of the others comes from another step than that of one that is alone, and none is drafted.
    CHECK(generator.generate(std::span(&alone, 1)).completions[0].token_ids == together.completions[sample].token_ids);
  }
}

TEST_CASE("a draft stops where the draft model's positions end", "[speculation]") {
  const std::vector<TextRequest> requests{
      {.prompt = "Once upon a time", .max_tokens = 500, .eos = EosHandling::ignore}};
  const auto alone = tokens_of(Generator(kTarget, engine_options()).generate(requests));
  GeneratorOptions options = with_draft(engine_options(), {}, chain_shape(4));
  options.draft_weights = load_weights(kDraft);
  options.draft_weights->shape.max_position_embeddings = 100;
  const Generation generation = Generator(kTarget, options).generate(requests);
  CHECK(tokens_of(generation) == alone);
  CHECK(generation.report.drafts.num_drafts > 10);
  CHECK(generation.report.drafts.num_drafts < 100);
}

TEST_CASE("synthetic acceptance comes out at the rates that were asked for", "[speculation]") {
  GeneratorOptions options = with_draft(engine_options(), kDraft, chain_shape(3));
  options.engine.speculative_config.rejection_sample_method = RejectionSampleMethod::synthetic;
  options.engine.speculative_config.synthetic_acceptance_rates = {0.8, 0.6};
  std::vector<TextRequest> requests = story_requests(20, 100);
  for (std::size_t index = 0; index < requests.size(); ++index) {
    requests[index].eos = EosHandling::ignore;
    requests[index].sampling.seed = index;
  }
  const DraftCounts drafts = Generator(kTarget, options).generate(requests).report.drafts;
  const std::vector<double> rates{0.8, 0.6, 0.6};
  for (std::size_t depth = 0; depth < rates.size(); ++depth) {
    const auto tested = static_cast<double>(drafts.by_depth.at(depth).tested);
    CHECK(tested > 100);
    CHECK(std::abs(drafts.acceptance_rate(static_cast<int>(depth) + 1) - rates[depth]) < 5 * std::sqrt(0.25 / tested));
  }
}

}  // namespace dculab::engine
