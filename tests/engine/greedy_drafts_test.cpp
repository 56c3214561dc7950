// Greedy texts of the shipped model are its own, whoever drafts and however it is served.
#include <algorithm>
#include <set>
#include <string_view>

#include "engine/checkpoint/medusa_checkpoint.hpp"
#include "model/kv/kv_bytes.hpp"
#include "tests/engine/support/drafting_generators.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/sanitized.hpp"

namespace dculab::engine {
namespace {

const DraftShape kTree = full_tree_shape(std::vector<int>{3, 2, 1});
const DraftShape kSmallTree = full_tree_shape(std::vector<int>{2, 2, 1});

// Of the model and the draft model together.
Bytes memory_for(int num_tokens, const GeneratorOptions& options) {
  const auto bytes = [&](const std::filesystem::path& folder) {
    return kv_bytes_per_token(read_model_shape(folder), options.engine.kv_cache_dtype) * options.engine.block_size;
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

GeneratorOptions with_ngrams(GeneratorOptions options) {
  options.engine.speculative_config = drafting(SpeculativeMethod::ngram, chain_shape(5));
  return options;
}

std::vector<GeneratorOptions> drafting_ways(const GeneratorOptions& options) {
  return {with_draft(options, kDraft, chain_shape(1)), with_draft(options, kDraft, chain_shape(4)),
          with_draft(options, kDraft, kTree), with_ngrams(options)};
}

// Prompts that end before the first block of 64 tokens does, near its end, and behind it; the short ones are beginnings
// of the long ones.
std::vector<TextRequest> two_thousand_requests() {
  std::vector<TextRequest> all;
  std::set<std::string_view> different;
  for (const std::size_t bytes : {60, 150, 240})
    for (const TextRequest& request : story_requests(670, 21, bytes)) all.push_back(request);  // 24 tokens on average
  for (const TextRequest& request : all) different.insert(request.prompt);
  REQUIRE(different.size() >= 2'000);
  return all;
}

// All in a batch have room for their whole draft. On one thread, as CTest has another test for the second core.
GeneratorOptions roomy(Dtype kv, int block_size) {
  GeneratorOptions options = engine_options(kv, block_size);
  options.num_threads = 1;
  options.engine.max_num_seqs = 128;
  options.engine.max_num_batched_tokens = 2048;
  options.engine.enable_prefix_caching = true;
  return options;
}

// Of texts that differ, the first one's number; -1: none do.
std::ptrdiff_t first_different(const Generation& generation, const std::vector<std::vector<TokenId>>& expected) {
  const std::vector<std::vector<TokenId>> tokens = tokens_of(generation);
  REQUIRE(tokens.size() == expected.size());
  const auto found = std::ranges::mismatch(tokens, expected).in1;
  return found == tokens.end() ? -1 : found - tokens.begin();
}

void check_two_thousand(Dtype kv) {
  const std::vector<TextRequest> requests = two_thousand_requests();
  GeneratorOptions without_cache = roomy(kv, 16);
  without_cache.engine.enable_prefix_caching = false;
  const auto alone = tokens_of(Generator(kTarget, without_cache).generate(requests));
  for (const int block_size : {1, 16, 64}) {
    const GeneratorOptions plain = roomy(kv, block_size);
    for (const GeneratorOptions& options :
         {with_draft(plain, kDraft, chain_shape(4)), with_draft(plain, kDraft, kSmallTree), with_ngrams(plain),
          with_medusa(plain, read_medusa_shape(kMedusaHeads))}) {
      INFO("block size " << block_size << ", " << name(options.engine.speculative_config.method) << " "
                         << to_string(options.engine.speculative_config.shape));
      const Generation generation = Generator(kTarget, options).generate(requests);
      CHECK(first_different(generation, alone) == -1);
      CHECK(generation.report.drafts.num_accepted_tokens > std::ssize(requests));
    }
  }
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

TEST_CASE("on 2,000 prompts greedy texts are those of the model alone, F32", "[.][long][once][f32]") {
  check_two_thousand(Dtype::f32);
}

TEST_CASE("on 2,000 prompts greedy texts are those of the model alone, F16", "[.][long][once][f16]") {
  check_two_thousand(Dtype::f16);
}

}  // namespace dculab::engine
