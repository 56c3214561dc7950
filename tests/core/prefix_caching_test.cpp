// Prefix caching and samples of one prompt: the same texts, with less to compute.
#include "tests/core/cached_memory.hpp"
#include "tests/core/conversations.hpp"
#include "tests/support/retention_policies.hpp"

using namespace dculab;

namespace {

Request prompt_of(SequenceId id, std::vector<TokenId> tokens, int max_tokens = 2) {
  Request request;
  request.id = id;
  request.prompt_token_ids = std::move(tokens);
  request.max_tokens = max_tokens;
  return request;
}

}  // namespace

TEST_CASE("prefix caching, samples and small pools do not change the texts", "[prefix_caching]") {
  int preemptions = 0, cached = 0, copies = 0, unwritten = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    INFO("seed " << seed);
    const int most_samples = seed % 3 == 0 ? 4 : 1;
    const Workload work = conversations(seed, 20, most_samples);
    const ServedTexts expected = serve(options_with(16, 256, 4096), 2000, work);
    REQUIRE(expected.num_preemptions == 0);
    for (const int block_size : {1, 4, 16}) {
      EngineOptions options =
          options_with(block_size, 3 + static_cast<int>(seed % 5), 20 + static_cast<int>(seed % 60));
      options.enable_prefix_caching = true;
      options.enable_chunked_prefill = seed % 4 != 0;
      if (!options.enable_chunked_prefill) options.max_num_batched_tokens = 128;
      const int num_blocks = (124 + block_size - 1) / block_size + static_cast<int>(seed % 7);
      const ServedTexts served = serve(options, num_blocks, work);
      INFO("block size " << block_size);
      REQUIRE(served.tokens == expected.tokens);
      preemptions += served.num_preemptions;
      copies += served.num_copies;
      unwritten += served.num_unwritten;
      for (const auto& [id, count] : served.num_cached_tokens) cached += count;
    }
  }
  INFO(preemptions << " preemptions, " << cached << " cached tokens, " << copies << " copies, " << unwritten
                   << " tokens not written");
  REQUIRE(preemptions > 100);
  REQUIRE(cached > 1000);
  REQUIRE(copies > 10);
  REQUIRE(unwritten > 10);
}

TEST_CASE("where decodes see a part of the cache, what was generated is no prefix of a prompt", "[prefix_caching]") {
  std::vector<TokenId> text;
  for (int i = 0; i < 24; ++i) text.push_back(i * 7 % 50);
  EngineOptions options = options_with(4, 1, 64);  // one after the other
  options.enable_prefix_caching = true;
  for (const bool sees_all : {true, false}) {
    if (!sees_all) options.kv_retention = critical(0.25);
    const ServedTexts first = serve(options, 100, {.requests = {prompt_of(0, text, 30)}, .arrivals = {0}});
    const std::vector<TokenId>& longer = first.tokens.at(0);
    REQUIRE(longer.size() == 54);
    const ServedTexts both =
        serve(options, 100, {.requests = {prompt_of(0, text, 30), prompt_of(1, longer)}, .arrivals = {0, 0}});
    CHECK(both.num_cached_tokens.at(1) == (sees_all ? 52 : 24));
  }
}

TEST_CASE("requests that begin in one step share their beginning, whatever the pool does", "[prefix_caching]") {
  int shared = 0, preemptions = 0;
  for (unsigned seed = 0; seed < 80; ++seed) {
    Workload work = conversations(seed, 24, seed % 4 == 0 ? 3 : 1);
    for (int& arrival : work.arrivals) arrival = arrival / 20 * 20;  // in bursts
    const ServedTexts expected = serve(options_with(16, 256, 4096), 2000, work);
    for (const int block_size : {1, 4, 16})
      for (const PrefixEviction eviction : {PrefixEviction::lru, PrefixEviction::lfu}) {
        INFO("seed " << seed << ", block size " << block_size << ", " << name(eviction));
        EngineOptions options =
            options_with(block_size, 4 + static_cast<int>(seed % 9), 128 + 16 * static_cast<int>(seed % 20));
        options.enable_prefix_caching = true;
        options.prefix_eviction = eviction;
        options.enable_chunked_prefill = seed % 3 != 0;
        if (seed % 2 == 0) options.preemption_mode = PreemptionMode::swap;
        const int num_blocks = (124 + block_size - 1) / block_size * (1 + static_cast<int>(seed % 3));
        const ServedTexts served = serve(options, num_blocks, work, 200 / block_size);
        REQUIRE(served.tokens == expected.tokens);
        shared += served.num_shared;
        preemptions += served.num_preemptions;
      }
  }
  INFO(shared << " tokens read in the step that wrote them, " << preemptions << " preemptions");
  CHECK(shared > 10000);
  CHECK(preemptions > 100);
}

TEST_CASE("of prompts that come at once the first computes what all begin with", "[prefix_caching]") {
  EngineOptions options = options_with(4, 8, 100);
  options.enable_prefix_caching = true;
  std::vector<Request> requests;
  for (TokenId own = 30; own < 35; ++own) {
    std::vector<TokenId> tokens = counted(16);
    tokens.push_back(own);
    requests.push_back(prompt_of(own, tokens));
  }
  CachedMemory memory(options, {.num_blocks = 40, .max_position_embeddings = 1000});
  const ServedTexts served = memory.serve(requests, {0, 0, 0, 0, 0});
  for (const auto& [id, cached] : served.num_cached_tokens) CHECK(cached == (id == 30 ? 0 : 16));
  CHECK(served.num_computed == 17 + 4 * 1 + 5);  // and a decode each
  CHECK(served.num_shared == 4 * 16);
}

TEST_CASE("swapped sequences get their own texts, beside shared blocks and a host that is full", "[prefix_caching]") {
  SwapCounts swaps;
  int preemptions = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    const Workload work = conversations(seed, 20, seed % 3 == 0 ? 4 : 1);
    const ServedTexts expected = serve(options_with(16, 256, 4096), 2000, work);
    for (const int block_size : {1, 4, 16})
      for (const int host_tokens : {40, 4000}) {
        INFO("seed " << seed << ", block size " << block_size << ", host tokens " << host_tokens);
        EngineOptions options =
            options_with(block_size, 3 + static_cast<int>(seed % 5), 20 + static_cast<int>(seed % 60));
        options.enable_prefix_caching = seed % 2 == 0;
        options.preemption_mode = PreemptionMode::swap;
        options.batching = seed % 7 == 0 ? Batching::per_batch : Batching::continuous;
        const int num_blocks = (124 + block_size - 1) / block_size + static_cast<int>(seed % 7);
        const ServedTexts served = serve(options, num_blocks, work, host_tokens / block_size);
        REQUIRE(served.tokens == expected.tokens);
        REQUIRE(served.swaps.preemptions <= served.num_preemptions);
        REQUIRE(served.swaps.blocks_in <= served.swaps.blocks_out);
        if (host_tokens == 4000) REQUIRE(served.swaps.preemptions == served.num_preemptions);
        if (!options.enable_prefix_caching) REQUIRE(served.swaps.blocks_in == served.swaps.blocks_out);
        swaps += served.swaps;
        preemptions += served.num_preemptions;
      }
  }
  INFO(preemptions << " preemptions, " << swaps.preemptions << " by swap, " << swaps.blocks_out << " blocks out, "
                   << swaps.blocks_in << " in");
  REQUIRE(swaps.preemptions > 100);
  REQUIRE(swaps.preemptions < preemptions);     // the small host was full at times
  REQUIRE(swaps.blocks_in < swaps.blocks_out);  // some were still cached
}

TEST_CASE("a swapped sequence goes on where it was, and computes nothing twice", "[prefix_caching]") {
  for (const PreemptionMode mode : {PreemptionMode::recompute, PreemptionMode::swap}) {
    EngineOptions options = options_with(4, 8, 100);
    options.preemption_mode = mode;
    // Two of 12 + 13 tokens, 6 blocks each once their last token is computed on, in 10 blocks.
    const int num_host_blocks = mode == PreemptionMode::swap ? 10 : 0;
    CachedMemory memory(options, {10, 1000, 0, num_host_blocks});
    const ServedTexts served = memory.serve({prompt_of(0, counted(12), 13), prompt_of(1, counted(12, 20), 13)}, {0, 0});
    CHECK(served.num_preemptions == 1);
    CHECK((served.num_computed == 48) == (mode == PreemptionMode::swap));
    const SwapCounts expected = mode == PreemptionMode::swap ? SwapCounts{1, 5, 5} : SwapCounts{};
    CHECK(served.swaps == expected);
  }
}

TEST_CASE("a prompt that was served is found again, but for one token", "[prefix_caching]") {
  EngineOptions options = options_with(4, 8, 100);
  options.enable_prefix_caching = true;
  for (const auto& [length, cached] : {std::pair{12, 11}, {13, 12}, {15, 12}, {3, 0}}) {
    INFO("prompt of " << length);
    CachedMemory memory(options, {.num_blocks = 20, .max_position_embeddings = 1000});
    const ServedTexts served = memory.serve({prompt_of(0, counted(length)), prompt_of(1, counted(length))}, {0, 10});
    CHECK(served.num_cached_tokens.at(0) == 0);
    CHECK(served.num_cached_tokens.at(1) == cached);
    CHECK(served.num_unwritten == (length == 12 ? 1 : 0));  // its block is shared: the last token only gives logits
    CHECK(served.num_computed == (length + 1) + (length - cached + 1));
  }
}

TEST_CASE("two prompts of one step that are wholly cached leave the shared block alone", "[prefix_caching]") {
  EngineOptions options = options_with(4, 8, 100);
  options.enable_prefix_caching = true;
  CachedMemory memory(options, {.num_blocks = 20, .max_position_embeddings = 1000});
  const ServedTexts served =
      memory.serve({prompt_of(0, counted(8)), prompt_of(1, counted(8)), prompt_of(2, counted(8))}, {0, 10, 10});
  CHECK(served.num_unwritten == 2);
  CHECK(served.num_cached_tokens.at(2) == 7);
}

TEST_CASE("generated text is found again by the turn that follows it", "[prefix_caching]") {
  EngineOptions options = options_with(4, 8, 100);
  options.enable_prefix_caching = true;
  CachedMemory first(options, {.num_blocks = 40, .max_position_embeddings = 1000});
  const Request question = prompt_of(0, counted(10), 11);
  std::vector<TokenId> history = first.serve({question}, {0}).tokens.at(0);  // 21 tokens, 20 of them computed
  history.push_back(49);
  CachedMemory memory(options, {.num_blocks = 40, .max_position_embeddings = 1000});
  CHECK(memory.serve({question, prompt_of(1, history)}, {0, 30}).num_cached_tokens.at(1) == 20);
}

TEST_CASE("equal blocks are kept once, and other tokens or another beginning are another block", "[prefix_caching]") {
  BlockPool pool(12, 2, 0, PrefixCaching::on);
  std::vector<BlockCopy> copies;
  BlockTable a, b;
  REQUIRE(pool.append(a, 4, copies));
  REQUIRE(pool.append(b, 4, copies));
  const std::vector<TokenId> tokens{1, 2, 3, 4};
  pool.publish(a, tokens);
  pool.publish(b, tokens);
  CHECK(pool.num_cached() == 2);
  BlockTable c;
  CHECK(pool.adopt_prefix(c, std::vector<TokenId>{3, 4, 3, 4}) == 0);
  CHECK(pool.adopt_prefix(c, std::vector<TokenId>{1, 2, 4, 3}) == 2);
  CHECK(c.blocks()[0] == a.blocks()[0]);
  for (BlockTable* table : {&b, &a, &c}) pool.release(*table);
  CHECK(pool.audit().empty());
  CHECK(pool.num_free() == 12);
}

TEST_CASE("a hash depends on every token, its place and the beginning", "[prefix_caching]") {
  const std::vector<TokenId> tokens{5, 6, 7};
  const PrefixHash hash = extend({}, tokens);
  CHECK(hash == extend({}, tokens));
  CHECK_FALSE(hash == extend({}, std::vector<TokenId>{5, 7, 6}));
  CHECK_FALSE(hash == extend({}, std::vector<TokenId>{5, 6}));
  CHECK_FALSE(hash == extend(hash, tokens));
  CHECK_FALSE(hash.low == hash.high);
}

TEST_CASE("samples share the prompt's blocks and copy what they write to", "[prefix_caching]") {
  EngineOptions options = options_with(4, 8, 100);
  CachedMemory memory(options, {.num_blocks = 40, .max_position_embeddings = 1000});
  Request request = prompt_of(0, counted(10), 5);
  request.n = 3;
  request.sampling.seed = 4;
  const ServedTexts served = memory.serve({request}, {0});
  REQUIRE(served.tokens.size() == 3);
  CHECK(served.tokens.at(0) != served.tokens.at(1));
  CHECK(served.tokens.at(1) != served.tokens.at(2));
  CHECK(served.num_unwritten == 2);
  CHECK(served.num_copies == 2);  // the last who writes to the half-full block has it for itself
  CHECK(served.num_computed == 10 + 4 + 2 * (1 + 4));
  for (int sample = 1; sample < 3; ++sample) {
    Request alone = prompt_of(0, counted(10), 5);
    alone.sampling.seed = 4U + static_cast<unsigned>(sample);
    CachedMemory other(options, {.num_blocks = 40, .max_position_embeddings = 1000});
    CHECK(other.serve({alone}, {0}).tokens.at(0) == served.tokens.at(sample));
  }
}

TEST_CASE("samples that no block can be shared for are refused", "[prefix_caching]") {
  EngineOptions options = options_with(4, 8, 100);
  Request request = prompt_of(0, counted(10), 5);
  request.n = 0;
  const SchedulerLimits limits{.num_blocks = 40, .max_position_embeddings = 1000};
  CHECK_THAT(*Scheduler(options, limits).refusal(request), ContainsSubstring("n must be at least 1"));
  request.n = 2;
  CHECK_FALSE(Scheduler(options, limits).refusal(request));
  options.kv_retention = {.policy = RetentionPolicy::window, .window_tokens = 8};
  CHECK_THAT(*Scheduler(options, limits).refusal(request),
             ContainsSubstring("kv_retention window changes for each; ask for one"));
}
