// Drafts of any shape change no text and leave no slot behind.
#include <numeric>

#include "tests/core/cached_memory.hpp"
#include "tests/core/conversations.hpp"
#include "tests/support/sanitized.hpp"

using namespace dculab;

namespace {

// A chain, and trees up to the largest.
DraftShape shape_of(unsigned seed) {
  switch (seed % 5) {
    case 0:
      return chain_shape(1);
    case 1:
      return chain_shape(5);
    case 2:
      return full_tree_shape(std::vector<int>{2, 2, 1});
    case 3:
      return full_tree_shape(std::vector<int>{3, 1, 2, 1});
    default:
      return full_tree_shape(std::vector<int>{3, 4, 4});  // 3 + 12 + 48
  }
}

EngineOptions drafting_options(unsigned seed, int block_size) {
  EngineOptions options = options_with(block_size, 3 + static_cast<int>(seed % 5), 20 + static_cast<int>(seed % 60));
  options.speculative_config = {.method = SpeculativeMethod::draft_model, .shape = shape_of(seed)};
  options.enable_prefix_caching = seed % 2 == 0;
  options.enable_chunked_prefill = seed % 4 != 1;
  if (!options.enable_chunked_prefill) options.max_num_batched_tokens = 128;
  options.batching = seed % 7 == 0 ? Batching::per_batch : Batching::continuous;
  if (seed % 3 == 0) options.preemption_mode = PreemptionMode::swap;
  REQUIRE(problems(options).empty());
  return options;
}

}  // namespace

TEST_CASE("drafts, right and wrong, change no text under small pools, sharing and swapping", "[drafting]") {
  DraftCounts drafts;
  int preemptions = 0, swaps = 0, moves = 0, cached = 0, copies = 0;
  for (unsigned seed = 0; seed < 105; ++seed) {
    if (thinned_out(seed, 4)) continue;
    const Workload work = conversations(seed, 20, seed % 3 == 0 ? 4 : 1);
    const ServedTexts expected =
        CachedMemory(options_with(16, 256, 4096), {.num_blocks = 2000, .max_position_embeddings = 100000})
            .serve(work.requests, work.arrivals);
    for (const int block_size : {1, 4, 16, 64}) {
      INFO("seed " << seed << ", block size " << block_size);
      const EngineOptions options = drafting_options(seed, block_size);
      const int num_blocks = (124 + block_size - 1) / block_size + static_cast<int>(seed % 7);
      const int host_blocks = options.preemption_mode == PreemptionMode::swap ? 400 / block_size : 0;
      CachedMemory memory(
          options, {.num_blocks = num_blocks, .max_position_embeddings = 100000, .num_host_blocks = host_blocks});
      const ServedTexts served = memory.serve(work.requests, work.arrivals);
      REQUIRE(served.tokens == expected.tokens);
      drafts += served.drafts;
      preemptions += served.num_preemptions;
      swaps += static_cast<int>(served.swaps.preemptions);
      moves += served.num_moves;
      copies += served.num_copies;
      for (const auto& [id, count] : served.num_cached_tokens) cached += count;
    }
  }
  INFO(preemptions << " preemptions, " << swaps << " swaps, " << moves << " moves, " << copies << " copies, " << cached
                   << " cached, " << drafts.num_draft_tokens << " drafted, " << drafts.num_accepted_tokens);
  CHECK(preemptions > 200);
  CHECK(swaps > 20);
  CHECK(moves > 500);
  CHECK(copies > 50);
  CHECK(cached > 1000);
  CHECK(drafts.num_accepted_tokens > 5000);
  CHECK(drafts.num_draft_tokens - drafts.num_accepted_tokens > 5000);
}

TEST_CASE("drafts preempt no sequence, and a prefill gets on beside them", "[drafting]") {
  EngineOptions options = options_with(1, 8, 16);
  options.speculative_config = {.method = SpeculativeMethod::ngram, .shape = chain_shape(20)};
  Request first = request_of(0, 4, 50), second = request_of(1, 40, 2);
  CachedMemory memory(options, {.num_blocks = 95, .max_position_embeddings = 1000});
  const ServedTexts served = memory.serve({first, second}, {0, 3});
  CHECK(served.num_preemptions == 0);
  CHECK(served.drafts.num_drafts > 0);
  CHECK(served.tokens.at(1).size() == 42);
}

TEST_CASE("what a draft may not reach: the end of a text, the model's positions, the draft model's context",
          "[drafting]") {
  EngineOptions options = options_with(4, 8, 100);
  options.speculative_config = {.method = SpeculativeMethod::draft_model, .shape = chain_shape(6)};
  const auto depths_of = [&](const SchedulerLimits& limits, int max_tokens) {
    Scheduler scheduler(options, limits);
    scheduler.submit(request_of(0, 10, max_tokens));
    std::vector<int> depths;
    while (!scheduler.idle()) {
      const ScheduledStep step = scheduler.schedule();
      depths.push_back(step.sequences.front().max_draft_depth);
      static_cast<void>(scheduler.batch_with_drafts(std::vector<DraftTree>(1)));
      const std::vector<TokenId> tokens(scheduler.sampled().size(), 1);
      scheduler.finish_step(verdicts_of(tokens), Seconds(1));
      static_cast<void>(scheduler.take_finished());
    }
    return depths;
  };
  CHECK(depths_of({.num_blocks = 40, .max_position_embeddings = 100}, 5) == std::vector<int>{0, 3, 2, 1, 0});
  CHECK(depths_of({.num_blocks = 40, .max_position_embeddings = 100}, 9) ==
        std::vector<int>{0, 6, 6, 5, 4, 3, 2, 1, 0});
  CHECK(depths_of({.num_blocks = 40, .max_position_embeddings = 100, .draft_context = 13}, 9) ==
        std::vector<int>{0, 2, 1, 0, 0, 0, 0, 0, 0});
}

TEST_CASE("a tree is written as paths of ranks, and read back", "[drafting]") {
  const DraftShape shape = parse_draft_shape("[(0,), (1,), (0, 0), (0,1), (1, 0), (0, 0, 0)]");
  CHECK(shape.num_tokens() == 6);
  CHECK(shape.depths() == std::vector<int>{1, 1, 2, 2, 2, 3});
  CHECK(shape.depth() == 3);
  CHECK(shape.width() == 2);
  CHECK_FALSE(shape.is_chain());
  CHECK(to_string(shape) == "[(0,), (1,), (0, 0), (0, 1), (1, 0), (0, 0, 0)]");
  CHECK(parse_draft_shape(to_string(shape)) == shape);
  CHECK(parse_draft_shape("[(1, 0), (0,), (1,)]") == parse_draft_shape("[(0,), (1,), (1, 0)]"));
  CHECK(parse_draft_shape("[(0,), (0, 0)]") == chain_shape(2));
  CHECK(full_tree_shape(std::vector<int>{2, 1}) == parse_draft_shape("[(0,), (1,), (0, 0), (1, 0)]"));
  for (const char* wrong : {"", "[]", "[(0)", "[(0,)] x", "[()]", "[(a,)]", "[(-1,)]", "[(0,), (0,)]", "[(0, 0)]"}) {
    INFO(wrong);
    CHECK_THROWS_WITH(parse_draft_shape(wrong), ContainsSubstring("speculative_token_tree"));
  }
}

TEST_CASE("a token of a tree sees its ancestors and itself", "[drafting]") {
  DraftTree tree;  // a, b after the last token; c after a, d after b, e after c
  tree.nodes = {{.token = 1},
                {.token = 2, .rank = 1},
                {.token = 3, .parent = 0},
                {.token = 4, .parent = 1},
                {.token = 5, .parent = 2}};
  CHECK(visibility(tree) == std::vector<std::uint64_t>{0b1, 0b11, 0b101, 0b1011, 0b10101, 0b101011});
  CHECK(tree.depths() == std::vector<int>{1, 1, 2, 2, 3});
  CHECK(tree.depth() == 3);
  CHECK(tree.children(DraftNode::kRoot) == std::vector<int>{0, 1});
  CHECK_FALSE(tree.is_chain());
  DraftTree shallow = tree, small = tree;
  shallow.probabilities.resize(10);
  std::iota(shallow.probabilities.begin(), shallow.probabilities.end(), 0.0F);
  shallow.limit_depth(1);
  CHECK(shallow.num_tokens() == 2);
  CHECK(shallow.probabilities == std::vector<float>{0, 1, 2, 3});
  small.truncate(3);
  CHECK(small.nodes == std::vector<DraftNode>(tree.nodes.begin(), tree.nodes.begin() + 3));
  const DraftTree one_after_the_other = chain(std::vector<TokenId>{7, 8, 9});
  CHECK(one_after_the_other.is_chain());
  CHECK(visibility(one_after_the_other) == std::vector<std::uint64_t>{0b1, 0b11, 0b111, 0b1111});
}

TEST_CASE("drafts are counted by depth and by rank", "[drafting]") {
  DraftTree tree;
  tree.nodes = {{.token = 1}, {.token = 2, .rank = 1}, {.token = 3, .parent = 1}, {.token = 4, .parent = 1, .rank = 1}};
  DraftCounts counts;
  counts.add(tree, {.tokens = {2, 4, 9}, .path = {1, 3}});
  counts.add(tree, {.tokens = {2, 9}, .path = {1}});
  counts.add(tree, {.tokens = {9}, .path = {}});
  counts.add({}, {.tokens = {9}, .path = {}});  // no draft
  CHECK(counts.num_drafts == 3);
  CHECK(counts.num_draft_tokens == 12);
  CHECK(counts.num_accepted_tokens == 3);
  CHECK(counts.by_depth == std::vector<DraftCounts::Place>{{3, 2}, {2, 1}});
  CHECK(counts.by_rank == std::vector<DraftCounts::Place>{{5, 0}, {5, 3}});
  CHECK(counts.mean_acceptance_length() == 2);
  CHECK(counts.acceptance_rate(2) == 0.5);
  DraftCounts twice = counts;
  twice += counts;
  CHECK(twice.by_rank == std::vector<DraftCounts::Place>{{10, 0}, {10, 6}});
  CHECK(twice.mean_acceptance_length() == 2);
}

TEST_CASE("a table that is cut gives whole blocks back", "[drafting]") {
  BlockPool pool(10, 4);
  std::vector<BlockCopy> copies;
  BlockTable table;
  REQUIRE(pool.append(table, 14, copies));
  CHECK(pool.num_free() == 6);
  pool.truncate(table, 20);
  CHECK(table.num_tokens() == 14);
  pool.truncate(table, 9);
  CHECK(pool.num_free() == 7);
  CHECK(table.num_tokens() == 9);
  CHECK(table.blocks().size() == 3);
  REQUIRE(pool.append(table, 3, copies));
  CHECK(table.blocks().size() == 3);
  pool.truncate(table, 0);
  CHECK(pool.num_free() == 10);
  CHECK(pool.audit().empty());
}
