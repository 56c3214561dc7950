// The skip set: padding that is left out of prompts, and prompts that are written once for all who ask the same.
#include "core/kv/skip.hpp"

#include "core/kv/table.hpp"
#include "tests/core/cached_memory.hpp"
#include "tests/core/conversations.hpp"

using namespace dculab;

namespace {

constexpr TokenId kPad = 9, kStop = 7;

std::vector<TokenId> kept(const std::vector<TokenId>& prompt, TokenId pad = kPad) {
  return without_padding(prompt, pad, std::vector<TokenId>{kStop});
}

EngineOptions skipping(int block_size, int max_num_seqs, int max_num_batched_tokens) {
  EngineOptions options = options_with(block_size, max_num_seqs, max_num_batched_tokens);
  options.kv_skip.duplicate_prompts = true;
  return options;
}

Request same_prompt(SequenceId id, int tokens, int max_tokens) {
  Request request{.id = id, .prompt_token_ids = counted(tokens), .max_tokens = max_tokens};
  request.sampling.seed = static_cast<std::uint64_t>(id);
  return request;
}

// Most requests ask what one of the five before them asked.
Workload repeated_conversations(unsigned seed, int most_samples) {
  Workload work = conversations(seed, 24, most_samples);
  Dice dice(seed + 1000);
  for (std::size_t index = 1; index < work.requests.size(); ++index) {
    if (dice.pick(0, 3) == 0) continue;
    const int back = dice.pick(1, std::min(5, static_cast<int>(index)));
    work.requests[index].prompt_token_ids = work.requests[index - static_cast<std::size_t>(back)].prompt_token_ids;
  }
  return work;
}

}  // namespace

TEST_CASE("padding is pad tokens anywhere, or at the ends where they also end a text", "[skip]") {
  CHECK(kept({9, 9, 1, 2}) == std::vector<TokenId>{1, 2});
  CHECK(kept({1, 2, 9}) == std::vector<TokenId>{1, 2});
  CHECK(kept({9, 1, 9, 9, 2, 9}) == std::vector<TokenId>{1, 2});
  CHECK(kept({1, 2}) == std::vector<TokenId>{1, 2});
  CHECK(kept({9, 9}).empty());
  CHECK(kept({}).empty());
  CHECK(kept({7, 7, 1, 7, 2, 7}, kStop) == std::vector<TokenId>{1, 7, 2});
  CHECK(kept({7, 7}, kStop).empty());
  Request request{.prompt_token_ids = {9, 9, 1, 2, 9}};
  take_out_padding(request, kPad);
  CHECK(request.prompt_token_ids == std::vector<TokenId>{1, 2});
  CHECK(request.num_padding_tokens == 3);
}

TEST_CASE("what can be skipped has names", "[skip]") {
  KvSkip skip;
  CHECK(add_word(skip, "none"));
  CHECK(skip == KvSkip{});
  CHECK(text_of(skip) == "none");
  CHECK(add_word(skip, "duplicate_prompts"));
  CHECK(text_of(skip) == "duplicate_prompts");
  CHECK(add_word(skip, "padding"));
  CHECK(text_of(skip) == "padding, duplicate_prompts");
  KvSkip all;
  CHECK(add_word(all, "all"));
  CHECK(all == skip);
  CHECK_FALSE(add_word(all, "pads"));
}

TEST_CASE("a prompt of nothing but padding is refused, and so are caches whose blocks are not shared", "[skip]") {
  EngineOptions options = skipping(4, 8, 100);
  const SchedulerLimits limits{.num_blocks = 40, .max_position_embeddings = 1000};
  Request request{.prompt_token_ids = {kPad, kPad}};
  take_out_padding(request, kPad);
  CHECK(*Scheduler(options, limits).refusal(request) == "the prompt is nothing but padding");
  CHECK(problems(options).empty());
  options.kv_cache_dtype = Dtype::kivi4;
  REQUIRE(problems(options).size() == 1);
  CHECK_THAT(problems(options).front(),
             ContainsSubstring("kv_cache_skip duplicate_prompts cannot share blocks of kv_cache_dtype kivi4"));
  options.kv_cache_dtype = Dtype::f16;
  options.kv_retention = {.policy = RetentionPolicy::window, .window_tokens = 8};
  REQUIRE(problems(options).size() == 1);
  CHECK_THAT(problems(options).front(),
             ContainsSubstring("kv_retention window cannot be combined with kv_cache_skip duplicate_prompts"));
  options.kv_skip = {.padding = true};  // nothing is shared
  CHECK(problems(options).empty());
}

TEST_CASE("of equal prompts that come at once one is written, and each text is its own", "[skip]") {
  std::vector<Request> requests;
  for (SequenceId id = 0; id < 3; ++id) requests.push_back(same_prompt(id, 10, 5));
  CachedMemory memory(skipping(4, 8, 100), {.num_blocks = 40, .max_position_embeddings = 1000});
  const ServedTexts served = memory.serve(requests, {0, 0, 0});
  CHECK(served.num_computed == 10 + 4 + 2 * (1 + 4));
  CHECK(served.num_unwritten == 2);
  CHECK(served.num_duplicate_tokens == 2 * 10);
  CHECK(served.num_copies == 2);  // the last who writes to the half-full block has it for itself
  for (const auto& [id, cached] : served.num_cached_tokens) CHECK(cached == 0);
  for (const Request& request : requests) {
    CachedMemory alone(options_with(4, 8, 100), {.num_blocks = 40, .max_position_embeddings = 1000});
    CHECK(alone.serve({request}, {0}).tokens.at(request.id) == served.tokens.at(request.id));
  }
}

TEST_CASE("who comes later shares the prompt with one that has gone on writing behind it", "[skip]") {
  for (const int prompt : {1, 7, 8, 9, 10}) {
    INFO("prompt of " << prompt);
    const std::vector<Request> requests{same_prompt(0, prompt, 12), same_prompt(1, prompt, 9)};
    CachedMemory memory(skipping(4, 8, 100), {.num_blocks = 40, .max_position_embeddings = 1000});
    const ServedTexts served = memory.serve(requests, {0, 3});
    CHECK(served.num_duplicate_tokens == prompt);
    CHECK(served.num_computed == prompt + 11 + 1 + 8);
  }
}

TEST_CASE("a prompt is not shared with one that has ended, or that is another", "[skip]") {
  std::vector<Request> requests{same_prompt(0, 10, 2), same_prompt(1, 10, 2), same_prompt(2, 9, 2)};
  requests[2].prompt_token_ids.back() = 33;
  CachedMemory memory(skipping(4, 8, 100), {.num_blocks = 40, .max_position_embeddings = 1000});
  const ServedTexts served = memory.serve(requests, {0, 5, 5});
  CHECK(served.num_duplicate_tokens == 0);
}

// The block in which the prompt ends is full, and remembered, when the sequence that filled it ends with the step in
// which another has begun to share it. The other one writes to the block, so its old contents must not be found again.
TEST_CASE("the prefix cache forgets a block when a sequence that shared its beginning writes to it", "[skip]") {
  EngineOptions options = skipping(4, 8, 100);
  options.enable_prefix_caching = true;
  const SchedulerLimits limits{.num_blocks = 40, .max_position_embeddings = 1000};
  const Request first = same_prompt(0, 6, 3), second = same_prompt(9, 6, 4);
  const std::vector<TokenId> text = CachedMemory(options, limits).serve({first}, {0}).tokens.at(0);
  const std::vector<TokenId> other = CachedMemory(options, limits).serve({second}, {0}).tokens.at(9);
  REQUIRE(other[6] != text[6]);
  Request third{.id = 2, .prompt_token_ids = {text.begin(), text.begin() + 8}, .max_tokens = 2};
  third.prompt_token_ids.push_back(3);
  const ServedTexts served = CachedMemory(options, limits).serve({first, second, third}, {0, 2, 6});
  CHECK(served.tokens.at(0) == text);
  CHECK(served.num_duplicate_tokens == 6);
  CHECK(served.num_cached_tokens.at(2) == 4);
  CHECK(served.num_copies == 0);
  CHECK(served.tokens.at(9) == other);
}

TEST_CASE("duplicates change no text, whatever the pool, the steps and the preemptions", "[skip]") {
  int duplicates = 0, preemptions = 0, swaps = 0, copies = 0;
  for (unsigned seed = 0; seed < 80; ++seed) {
    Workload work = repeated_conversations(seed, seed % 4 == 0 ? 3 : 1);
    if (seed % 2 == 0)
      for (int& arrival : work.arrivals) arrival = arrival / 20 * 20;  // in bursts
    const ServedTexts expected = serve(options_with(16, 256, 4096), 2000, work);
    for (const int block_size : {1, 4, 16}) {
      INFO("seed " << seed << ", block size " << block_size);
      EngineOptions options =
          skipping(block_size, 4 + static_cast<int>(seed % 9), 128 + 16 * static_cast<int>(seed % 20));
      options.enable_prefix_caching = seed % 3 == 0;
      options.enable_chunked_prefill = seed % 5 != 0;
      options.batching = seed % 7 == 0 ? Batching::per_batch : Batching::continuous;
      if (options.enable_chunked_prefill) options.max_num_batched_tokens = 20 + static_cast<int>(seed % 60);
      if (seed % 4 != 1) options.preemption_mode = PreemptionMode::swap;
      const int num_blocks = (124 + block_size - 1) / block_size * (1 + static_cast<int>(seed % 3));
      const int host_blocks = options.preemption_mode == PreemptionMode::swap ? 200 / block_size : 0;
      const ServedTexts served = serve(options, num_blocks, work, host_blocks);
      REQUIRE(served.tokens == expected.tokens);
      swaps += static_cast<int>(served.swaps.preemptions);
      duplicates += served.num_duplicate_tokens;
      preemptions += served.num_preemptions;
      copies += served.num_copies;
    }
  }
  INFO(duplicates << " tokens of duplicates, " << preemptions << " preemptions, " << swaps << " of them swaps, "
                  << copies << " copies");
  CHECK(duplicates > 10000);
  CHECK(preemptions - swaps > 100);
  CHECK(swaps > 100);
  CHECK(copies > 100);
}

TEST_CASE("duplicates change no text beside drafts", "[skip]") {
  int duplicates = 0, accepted = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    const Workload work = repeated_conversations(seed, 1);
    const ServedTexts expected = serve(options_with(16, 256, 4096), 2000, work);
    for (const int block_size : {1, 4, 16}) {
      INFO("seed " << seed << ", block size " << block_size);
      EngineOptions options = skipping(block_size, 4 + static_cast<int>(seed % 9), 200);
      options.speculative_config.method = SpeculativeMethod::draft_model;
      options.speculative_config.shape = seed % 2 == 0 ? chain_shape(3) : full_tree_shape(std::vector<int>{2, 2});
      options.enable_prefix_caching = seed % 3 == 0;
      const ServedTexts served =
          serve(options, (140 + block_size - 1) / block_size * (1 + static_cast<int>(seed % 3)), work);
      REQUIRE(served.tokens == expected.tokens);
      duplicates += served.num_duplicate_tokens;
      accepted += static_cast<int>(served.drafts.num_accepted_tokens);
    }
  }
  CHECK(duplicates > 5000);
  CHECK(accepted > 1000);
}
