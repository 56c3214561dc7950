#include <algorithm>
#include <map>
#include <random>

#include "core/scheduler.hpp"
#include "tests/core/conversations.hpp"
#include "tests/core/requests.hpp"
#include "tests/support/catch.hpp"

using namespace dculab;

namespace {

// FNV-1a over all tokens so far: any token lost or repeated changes everything after it.
TokenId hashed_token(const Sequence& sequence) {
  std::uint32_t hash = 2166136261u;
  for (const TokenId token : sequence.tokens) hash = (hash ^ static_cast<std::uint32_t>(token)) * 16777619u;
  return static_cast<TokenId>(hash % 1000);
}

struct Served {
  std::map<SequenceId, std::vector<TokenId>> tokens;  // prompt and generated
  std::vector<SequenceId> admissions;                 // order of each request's first step
  int num_preemptions = 0;
  int num_steps = 0;
};

// Runs a scheduler without an engine and checks every step by what a KV cache would hold.
class SchedulerExercise {
 public:
  SchedulerExercise(const EngineOptions& options, int num_blocks)
      : options_(options), scheduler_(options, {.num_blocks = num_blocks, .max_position_embeddings = 100000}) {}

  // `arrivals[i]` is the step before which request i is submitted.
  Served serve(const std::vector<Request>& requests, const std::vector<int>& arrivals) {
    for (int step = 0; served_.tokens.size() < requests.size(); ++step) {
      REQUIRE(step < 100000);
      for (std::size_t index = 0; index < requests.size(); ++index) {
        if (arrivals[index] != step) continue;
        REQUIRE_FALSE(scheduler_.refusal(requests[index]));
        scheduler_.submit(requests[index]);
      }
      if (!scheduler_.idle()) run_step();
    }
    REQUIRE(scheduler_.idle());
    REQUIRE(scheduler_.pool().num_free() == scheduler_.pool().num_blocks());
    REQUIRE(scheduler_.pool().audit().empty());
    served_.num_preemptions = scheduler_.num_preemptions();
    return served_;
  }

 private:
  void run_step() {
    const ScheduledStep step = scheduler_.schedule();
    ++served_.num_steps;
    check(step.batch);
    std::vector<TokenId> tokens;
    for (const Sequence* sequence : scheduler_.sampled()) tokens.push_back(hashed_token(*sequence));
    scheduler_.finish_step(verdicts_of(tokens), Seconds(served_.num_steps));
    for (const auto& sequence : scheduler_.take_finished()) {
      REQUIRE(sequence->status == SequenceStatus::finished);
      REQUIRE(sequence->block_table.blocks().empty());
      served_.tokens[sequence->request.id] = sequence->tokens;
    }
  }

  void check(const Batch& batch) {
    REQUIRE_FALSE(batch.sequences.empty());
    REQUIRE(batch.num_tokens() <= options_.max_num_batched_tokens);
    REQUIRE(static_cast<int>(batch.sequences.size()) <= options_.max_num_seqs);
    REQUIRE(batch.token_ids.size() == static_cast<std::size_t>(batch.num_tokens()));
    REQUIRE(batch.block_tables.size() == batch.sequences.size());
    REQUIRE(std::ranges::is_sorted(batch.sequences, {}, &SequenceSlice::phase));  // prefills, then decodes
    const auto rows = std::ranges::count(batch.sequences, 1, &SequenceSlice::num_logits);
    REQUIRE(static_cast<std::size_t>(rows) == scheduler_.sampled().size());
    std::map<BlockId, SequenceId> owners;
    auto token = batch.token_ids.begin();
    for (std::size_t index = 0; index < batch.sequences.size(); ++index) {
      const SequenceSlice& slice = batch.sequences[index];
      for (const BlockId block : batch.block_tables[index])
        if (!owners.emplace(block, slice.id).second) FAIL("block " << block << " is used twice");
      check_slice(slice, batch.block_tables[index].size(), {token, token + slice.num_new_tokens});
      token += slice.num_new_tokens;
    }
  }

  // Each token is computed once, in order, except that a preempted sequence starts over.
  void check_slice(const SequenceSlice& slice, std::size_t num_blocks, std::span<const TokenId> tokens) {
    REQUIRE(num_blocks == static_cast<std::size_t>(scheduler_.pool().blocks_for(slice.context_tokens())));
    std::vector<TokenId>& cached = cache_[slice.id];
    if (cached.empty() && !seen_[slice.id]) served_.admissions.push_back(slice.id);
    seen_[slice.id] = true;
    if (slice.num_computed_tokens == 0) cached.clear();
    REQUIRE(slice.num_computed_tokens == static_cast<int>(cached.size()));
    REQUIRE(slice.num_new_tokens >= 1);
    if (slice.phase == Phase::decode) REQUIRE(slice.num_new_tokens == 1);
    cached.insert(cached.end(), tokens.begin(), tokens.end());
    if (slice.num_logits == 0) return;
    const auto sampled = scheduler_.sampled();
    const auto of_slice = [&](const Sequence* sequence) { return sequence->request.id == slice.id; };
    REQUIRE((*std::ranges::find_if(sampled, of_slice))->tokens == cached);
  }

  EngineOptions options_;
  Scheduler scheduler_;
  std::map<SequenceId, std::vector<TokenId>> cache_;
  std::map<SequenceId, bool> seen_;
  Served served_;
};

Workload random_workload(unsigned seed, int count, int longest_prompt) {
  std::mt19937 random(seed);
  const auto pick = [&random](int low, int high) {
    return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
  };
  Workload work;
  int arrival = 0;
  for (int id = 0; id < count; ++id) {
    work.requests.push_back(request_of(id, pick(1, longest_prompt), pick(1, 40)));
    if (id % 3 == 0) work.requests.back().stop_tokens = {1, 10, 100, 500, 900};
    work.arrivals.push_back(arrival += pick(0, 3));
  }
  return work;
}

std::vector<SequenceId> ids_in_order(std::size_t count) {
  std::vector<SequenceId> ids(count);
  for (std::size_t index = 0; index < count; ++index) ids[index] = static_cast<SequenceId>(index);
  return ids;
}

}  // namespace

TEST_CASE("tiny pools, small budgets and chunks do not change the tokens", "[scheduler]") {
  int preemptions = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    INFO("seed " << seed);
    const int longest_prompt = seed % 2 == 0 ? 60 : 8;
    const Workload work = random_workload(seed, 25, longest_prompt);
    EngineOptions generous = options_with(16, 64, 4096);
    const Served expected = SchedulerExercise(generous, 1000).serve(work.requests, work.arrivals);
    REQUIRE(expected.num_preemptions == 0);

    const int block_size = 1 << (seed % 6);
    const int num_blocks = (longest_prompt + 39 + block_size - 1) / block_size + static_cast<int>(seed % 4);
    EngineOptions tight = options_with(block_size, 2 + static_cast<int>(seed % 9), 5 + static_cast<int>(seed % 70));
    tight.enable_chunked_prefill = seed % 5 != 0;
    if (!tight.enable_chunked_prefill) tight.max_num_batched_tokens = longest_prompt;
    const Served served = SchedulerExercise(tight, num_blocks).serve(work.requests, work.arrivals);
    REQUIRE(served.tokens == expected.tokens);
    REQUIRE(served.admissions == ids_in_order(work.requests.size()));
    preemptions += served.num_preemptions;
  }
  INFO(preemptions << " preemptions");
  REQUIRE(preemptions > 1000);
}
