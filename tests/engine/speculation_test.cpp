// Speculation on the engine: the texts of the shipped model are its own, whoever drafts and however it is served.
#include <algorithm>
#include <cmath>
#include <map>

#include "engine/evaluate/speculation_check.hpp"
#include "tests/engine/support/drafting_generators.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/sanitized.hpp"

namespace dculab::engine {
namespace {

const DraftShape kTree = full_tree_shape(std::vector<int>{3, 2, 1});

std::vector<TextRequest> requests_of(const std::vector<std::string>& prompts, int max_tokens) {
  std::vector<TextRequest> requests;
  for (std::size_t index = 0; index < prompts.size(); ++index)
    requests.push_back({.prompt = prompts[index], .max_tokens = max_tokens + static_cast<int>(index % 7)});
  return requests;
}

std::vector<TextRequest> story_requests(int count, int max_tokens) {
  std::vector<std::string> prompts = prompts_from(text_of(kTarget / "calibration.txt"), count, 150);
  for (std::size_t index = 1; index < prompts.size(); index += 5)  // some begin alike
    prompts[index] = prompts[index - 1] + prompts[index].substr(0, 20);
  return requests_of(prompts, max_tokens);
}

std::vector<std::vector<TokenId>> tokens_of(const Generation& generation) {
  std::vector<std::vector<TokenId>> tokens;
  for (const Completion& completion : generation.completions) tokens.push_back(completion.token_ids);
  return tokens;
}

// Of the model and the draft model together.
Bytes memory_for(int num_tokens, const GeneratorOptions& options) {
  const auto bytes = [&](const std::filesystem::path& folder) {
    return kv_block_bytes(read_model_shape(folder), options.engine.block_size, options.engine.kv_cache_dtype);
  };
  const Bytes both = bytes(kTarget) + (options.speculative_model.empty() ? Bytes() : bytes(kDraft));
  return (num_tokens / options.engine.block_size + 1) * both;
}

// Ways of serving that differ in what is shared, moved and computed again.
GeneratorOptions cramped(GeneratorOptions options, std::size_t way) {
  options.kv_cache_memory = memory_for(420, options);
  options.engine.max_num_seqs = 8;
  options.engine.max_num_batched_tokens = way % 2 == 0 ? 40 : 512;
  options.engine.enable_prefix_caching = way % 3 != 0;
  if (way % 4 == 1) {
    options.engine.preemption_mode = PreemptionMode::swap;
    options.engine.swap_space = memory_for(600, options);
  }
  return options;
}

std::vector<GeneratorOptions> drafting_ways(const GeneratorOptions& options) {
  GeneratorOptions ngram = options;
  ngram.engine.speculative_config = drafting(SpeculativeMethod::ngram, chain_shape(5));
  return {with_draft(options, kDraft, chain_shape(1)), with_draft(options, kDraft, chain_shape(4)),
          with_draft(options, kDraft, kTree), ngram};
}

}  // namespace

TEST_CASE("greedy texts are those of the model alone, token for token", "[speculation]") {
  const std::vector<TextRequest> requests = story_requests(14, 40);
  int preemptions = 0;
  std::int64_t cached = 0;
  std::size_t way = 0;
  DraftCounts drafts;
  for (const Dtype kv : {Dtype::f32, Dtype::f16}) {
    const auto alone = tokens_of(Generator(kTarget, engine_options(kv)).generate(requests));
    for (const int block_size : {1, 16, 64})
      for (const GeneratorOptions& options : drafting_ways(engine_options(kv, block_size))) {
        if (thinned_out(way++, 5)) continue;
        INFO("block size " << block_size << ", way " << way);
        Generator generator(kTarget, cramped(options, way));
        const Generation generation = generator.generate(requests);
        REQUIRE(tokens_of(generation) == alone);
        preemptions += generation.report.num_preemptions;
        cached += generation.report.num_cached_tokens;
        drafts += generation.report.drafts;
        CHECK(generation.report.drafting > Seconds());
        generator.set_drafting(Drafting::off);
        CHECK(generator.generate(requests).report.drafts.num_drafts == 0);
      }
  }
  INFO(preemptions << " preemptions, " << cached << " cached, " << drafts.num_accepted_tokens << " accepted");
  CHECK(preemptions > 10);
  CHECK(cached > 100);
  CHECK(drafts.num_accepted_tokens > 1000);
}

TEST_CASE("on 2,000 prompts greedy texts are those of the model alone", "[.][long][once]") {
  const std::vector<TextRequest> requests = story_requests(2'000, 32);
  REQUIRE(requests.size() >= 2'000);
  for (const Dtype kv : {Dtype::f32, Dtype::f16}) {
    const auto alone = tokens_of(Generator(kTarget, engine_options(kv)).generate(requests));
    for (const int block_size : {1, 16, 64})
      for (const GeneratorOptions& options : drafting_ways(engine_options(kv, block_size))) {
        INFO("block size " << block_size << ", " << to_string(options.engine.speculative_config.shape));
        CHECK(tokens_of(Generator(kTarget, options).generate(requests)) == alone);
      }
  }
}

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
        options.kv_cache_memory = 2 * kv_block_bytes(read_model_shape(kSmall), 4, Dtype::f32) * 22;
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

TEST_CASE("sampled texts with drafts are distributed as those without", "[speculation][once]") {
  if (kSanitized) return;  // it takes many texts
  constexpr int kSamples = 200, kRequests = 25;
  const auto count = [&](const GeneratorOptions& options, std::uint64_t first_seed) {
    std::vector<TextRequest> requests;
    for (std::uint64_t index = 0; index < kRequests; ++index)
      requests.push_back({.prompt = "Once upon a time",
                          .max_tokens = 3,
                          .sampling = {.temperature = 1.5, .top_k = 3, .seed = first_seed + 1000 * index},
                          .eos = EosHandling::ignore,
                          .n = kSamples});
    std::map<std::vector<TokenId>, double> counts;
    for (const Completion& completion : Generator(kTarget, options).generate(requests).completions)
      ++counts[completion.token_ids];
    return counts;
  };
  const auto alone = count(engine_options(), 1'000'000);
  for (const DraftShape& shape : {chain_shape(2), full_tree_shape(std::vector<int>{2, 2})}) {
    auto drafted = count(with_draft(engine_options(), kDraft, shape), 5'000'000);
    double chi_squared = 0, cells = 0;
    for (const auto& [tokens, times] : alone) {
      const double other = drafted[tokens];
      chi_squared += (times - other) * (times - other) / (times + other);  // as many texts of both
    }
    for (const auto& [tokens, times] : drafted) {
      ++cells;
      if (!alone.contains(tokens)) chi_squared += times;
    }
    INFO(to_string(shape) << ": chi-squared " << chi_squared << " of " << cells << " cells");
    CHECK(cells > 10);
    CHECK(chi_squared < cells + 5 * std::sqrt(2 * cells));
  }
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
