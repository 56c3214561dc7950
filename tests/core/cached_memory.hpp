// A KV cache made of words instead of vectors, and a scheduler that works on it: each slot holds a hash of the text up
// to its token, so whatever a block table shows can be checked against the text it should stand for. Every step is cut
// into two micro-batches, of which the first has read before the second writes. Where tokens are drafted, they are so
// at random: often right, often not.
#pragma once

#include <algorithm>
#include <map>
#include <random>
#include <span>
#include <vector>

#include "core/draft_counts.hpp"
#include "core/scheduler.hpp"
#include "tests/core/conversations.hpp"
#include "tests/core/random_drafts.hpp"
#include "tests/core/requests.hpp"
#include "tests/support/catch.hpp"

namespace dculab {

struct ServedTexts {
  std::map<SequenceId, std::vector<TokenId>> tokens;  // prompt and generated
  std::map<SequenceId, int> num_cached_tokens;
  int num_duplicate_tokens = 0;
  int num_preemptions = 0;
  SwapCounts swaps;
  int num_copies = 0;
  int num_unwritten = 0;
  int num_shifts = 0;
  int num_computed = 0;  // tokens of all steps
  int num_shared = 0;    // that a sequence read in the step in which another wrote them
  int num_moves = 0;
  DraftCounts drafts;
};

class CachedMemory {
 public:
  CachedMemory(const EngineOptions& options, SchedulerLimits limits)
      : options_(options),
        scheduler_(options, limits),
        memory_(static_cast<std::size_t>(limits.num_blocks) * static_cast<std::size_t>(options.block_size)),
        host_memory_(static_cast<std::size_t>(limits.num_host_blocks) * static_cast<std::size_t>(options.block_size)) {}

  // `arrivals[i]` is the step before which request i is submitted.
  ServedTexts serve(const std::vector<Request>& requests, const std::vector<int>& arrivals) {
    std::size_t submitted = 0;
    for (int step = 0; submitted < requests.size() || !scheduler_.idle(); ++step) {
      REQUIRE(step < 100000);
      for (std::size_t index = 0; index < requests.size(); ++index) {
        if (arrivals[index] != step) continue;
        REQUIRE_FALSE(scheduler_.refusal(requests[index]));
        for (int sample = 0; sample < requests[index].n; ++sample)
          texts_[requests[index].id + sample] = requests[index].prompt_token_ids;
        scheduler_.submit(requests[index]);
        ++submitted;
      }
      if (!scheduler_.idle()) run_step();
    }
    REQUIRE(scheduler_.pool().num_free() == scheduler_.pool().num_blocks());
    REQUIRE(scheduler_.pool().audit().empty());
    REQUIRE(scheduler_.host_pool().num_free() == scheduler_.host_pool().num_blocks());
    REQUIRE(scheduler_.host_pool().audit().empty());
    served_.num_preemptions = scheduler_.num_preemptions();
    served_.swaps = scheduler_.swaps();
    return served_;
  }

  [[nodiscard]] const Scheduler& scheduler() const { return scheduler_; }

 private:
  void run_step() {
    const ScheduledStep step = scheduler_.schedule();
    REQUIRE_FALSE(step.batch.sequences.empty());
    REQUIRE(step.batch.num_tokens() <= options_.max_num_batched_tokens);
    REQUIRE(static_cast<int>(step.batch.sequences.size()) <= options_.max_num_seqs);
    copy(step.swapped_out, memory_, host_memory_);
    copy(step.copies, memory_, memory_);
    copy(step.swapped_in, host_memory_, memory_);
    served_.num_copies += static_cast<int>(step.copies.size());
    const Batch batch = options_.speculative_config.enabled() ? drafted(step) : step.batch;
    REQUIRE(batch.num_tokens() <= options_.max_num_batched_tokens);
    run(batch);
    judge();
    for (const auto& sequence : scheduler_.take_finished()) {
      served_.tokens[sequence->request.id] = sequence->tokens;
      served_.num_cached_tokens[sequence->request.id] = sequence->num_cached_tokens;
      served_.num_duplicate_tokens += sequence->num_duplicate_tokens;
    }
  }

  void run(const Batch& batch) {
    const std::size_t all = batch.sequences.size();
    const std::size_t cut = static_cast<std::size_t>(served_.num_computed) % (all + 1);
    writers_.clear();
    token_ = batch.token_ids.begin();
    mask_ = batch.tree_masks.begin();
    drafts_.assign(all, {});
    for (const auto& [begin, end] : {std::pair(std::size_t{}, cut), std::pair(cut, all)}) {
      for (std::size_t index = begin; index < end; ++index) write(batch, index);
      for (std::size_t index = begin; index < end; ++index) read(batch, index);
    }
    REQUIRE(token_ == batch.token_ids.end());
    REQUIRE(mask_ == batch.tree_masks.end());
  }

  Batch drafted(const ScheduledStep& step) {
    REQUIRE(step.sequences.size() == step.batch.sequences.size());
    const bool is_chain = options_.speculative_config.shape.is_chain();
    std::vector<DraftTree> drafts;
    for (const ScheduledSequence& scheduled : step.sequences) {
      if (scheduled.max_draft_tokens > 0) REQUIRE(scheduled.sequence->phase() == Phase::decode);
      // Some are larger than was asked for, and cut.
      const int most = scheduled.max_draft_tokens > 0 ? scheduled.max_draft_tokens + 2 : 0;
      drafts.push_back(random_draft(*scheduled.sequence, is_chain, most, random_));
    }
    Batch batch = scheduler_.batch_with_drafts(drafts);
    for (std::size_t index = 0; index < step.sequences.size(); ++index) {
      const ScheduledSequence& scheduled = step.sequences[index];
      REQUIRE(batch.sequences[index].num_draft_tokens <= scheduled.max_draft_tokens);
    }
    return batch;
  }

  void judge() {
    std::vector<Verdict> verdicts;
    std::vector<int> wanted;  // tokens in the cache
    for (const Sequence* sequence : scheduler_.sampled()) {
      REQUIRE(std::ranges::equal(sequence->tokens, texts_.at(sequence->request.id)));
      const DraftTree& draft = scheduler_.draft_of(verdicts.size());
      REQUIRE((draft.empty() || draft.depth() < sequence->request.max_tokens - sequence->num_generated()));
      verdicts.push_back(true_verdict(*sequence, draft));
      served_.drafts.add(draft, verdicts.back());
      std::vector<TokenId>& text = texts_.at(sequence->request.id);
      text.insert(text.end(), verdicts.back().tokens.begin(), verdicts.back().tokens.end() - 1);
    }
    const std::vector<SlotMove> moves = scheduler_.finish_step(verdicts, Seconds(1));
    for (const SlotMove& move : moves)
      memory_.at(static_cast<std::size_t>(move.destination)) = memory_.at(static_cast<std::size_t>(move.source));
    served_.num_moves += static_cast<int>(moves.size());
    if (!options_.speculative_config.enabled()) return;
    if (const std::string found = scheduler_.pool().audit(); !found.empty()) FAIL(found);
    for (std::size_t index = 0; index < verdicts.size(); ++index) {
      const Sequence& sequence = *scheduler_.sampled()[index];
      if (sequence.finish_reason != FinishReason::none) continue;
      REQUIRE(sequence.num_tokens_in_cache() == sequence.num_tokens() - 1);
      if (scheduler_.draft_of(index).empty()) continue;
      REQUIRE(sequence.block_table.num_tokens() == sequence.num_tokens_in_cache());
    }
  }

  void copy(const std::vector<BlockCopy>& copies, std::vector<Word>& from, std::vector<Word>& to) const {
    const std::ptrdiff_t size = options_.block_size;
    for (const auto& [source, destination] : copies) {
      REQUIRE((source >= 0 && (source + 1) * size <= std::ssize(from)));
      REQUIRE((destination >= 0 && (destination + 1) * size <= std::ssize(to)));
      std::copy_n(from.begin() + source * size, size, to.begin() + destination * size);
    }
  }

  [[nodiscard]] std::size_t slot(const std::vector<BlockId>& blocks, int place) const {
    const auto size = static_cast<std::size_t>(options_.block_size), index = static_cast<std::size_t>(place);
    return static_cast<std::size_t>(blocks.at(index / size)) * size + index % size;
  }
  Word& at(const std::vector<BlockId>& blocks, int place) { return memory_.at(slot(blocks, place)); }

  void write(std::size_t slot, Word word, std::size_t writer) {
    memory_.at(slot) = word;
    REQUIRE(writers_.emplace(slot, writer).second);
  }

  // The words of a slice's drafts: of the text and the tokens that each sees. `masks`: of all new tokens.
  std::vector<Word> draft_words(const SequenceSlice& slice, std::span<const TokenId> drafts,
                                std::span<const std::uint64_t> masks) {
    std::vector<Word> words;
    for (int node = 0; node < slice.num_draft_tokens; ++node) {
      std::vector<TokenId> text = texts_.at(slice.id);
      const std::uint64_t all_before = (std::uint64_t{2} << (node + 1)) - 1;  // of a chain
      const std::uint64_t mask = masks.empty() ? all_before : masks[static_cast<std::size_t>(node) + 1];
      REQUIRE((mask & 1U) == 1);
      REQUIRE(mask >> (node + 1) == 1);
      for (int before = 0; before <= node; ++before)
        if ((mask >> (before + 1) & 1U) == 1) text.push_back(drafts[static_cast<std::size_t>(before)]);
      words.push_back(word_of(text));
    }
    return words;
  }

  // All sequences of a micro-batch write before one of them reads, as in a layer.
  void write(const Batch& batch, std::size_t index) {
    const SequenceSlice& slice = batch.sequences[index];
    const std::vector<BlockId>& blocks = batch.block_tables[index];
    std::vector<TokenId>& text = texts_[slice.id];
    REQUIRE(slice.num_new_tokens >= 1);
    REQUIRE(slice.first_position() <= static_cast<int>(text.size()));
    if (slice.num_newly_evicted_tokens > 0) shift(slice, blocks, text);
    for (int i = 0; i < slice.num_new_tokens - slice.num_draft_tokens; ++i) {
      const auto position = static_cast<std::size_t>(slice.first_position() + i);
      if (position == text.size()) text.push_back(*token_);
      REQUIRE(text[position] == *token_++);
      const std::size_t place = slot(blocks, slice.num_computed_tokens + i);
      const Word right = word_of(std::span(text).first(position + 1));
      if (i >= slice.num_unwritten_tokens)
        write(place, right, index);
      else
        REQUIRE(memory_.at(place) == right);
    }
    write_drafts(batch, index);
    served_.num_unwritten += slice.num_unwritten_tokens;
    served_.num_computed += slice.num_new_tokens;
  }

  void write_drafts(const Batch& batch, std::size_t index) {
    const SequenceSlice& slice = batch.sequences[index];
    const auto num_masks = slice.num_tree_tokens > 0 ? slice.num_new_tokens : 0;
    if (slice.num_tree_tokens > 0) REQUIRE(*mask_ == 1);
    drafts_[index] = draft_words(slice, std::span(token_, batch.token_ids.end()), std::span(mask_, mask_ + num_masks));
    token_ += slice.num_draft_tokens;
    mask_ += num_masks;
    const int first = slice.context_tokens() - slice.num_draft_tokens;
    for (int node = 0; node < slice.num_draft_tokens; ++node)
      write(slot(batch.block_tables[index], first + node), drafts_[index][static_cast<std::size_t>(node)], index);
  }

  void shift(const SequenceSlice& slice, const std::vector<BlockId>& blocks, const std::vector<TokenId>& text) {
    if (options_.kv_retention.policy != RetentionPolicy::sinks) return;
    ++served_.num_shifts;
    for (int sink = 0; sink < options_.kv_retention.sink_tokens; ++sink)
      at(blocks, sink) = word_of(std::span(text).first(static_cast<std::size_t>(sink) + 1));
    REQUIRE(slice.num_evicted_tokens > 0);
  }

  // Everything that the last new token attends to is there, and is what the policy says.
  void read(const Batch& batch, std::size_t index) {
    const SequenceSlice& slice = batch.sequences[index];
    const std::vector<BlockId>& blocks = batch.block_tables[index];
    const std::vector<TokenId>& text = texts_.at(slice.id);
    const KvRetention& retention = options_.kv_retention;
    REQUIRE(static_cast<int>(blocks.size()) == scheduler_.pool().blocks_for(slice.context_tokens()));
    const int last = slice.first_position() + slice.num_new_tokens - 1;
    REQUIRE(slice.num_evicted_tokens == kv_tokens_evicted_at(retention, options_.block_size, last));
    REQUIRE(slice.context_tokens() <= kv_capacity(retention, options_.block_size));
    if (retention.policy == RetentionPolicy::heavy_hitters) return;  // each head has its own order
    const int sinks = retention.policy == RetentionPolicy::sinks ? retention.sink_tokens : 0;
    const int first_draft = slice.context_tokens() - slice.num_draft_tokens;
    for (int node = 0; node < slice.num_draft_tokens; ++node)
      if (at(blocks, first_draft + node) != drafts_[index][static_cast<std::size_t>(node)])
        FAIL("sequence " << slice.id << ": somebody else wrote to the slot of draft " << node);
    for (int place = 0; place < first_draft; ++place) {
      const int position = place < sinks ? place : slice.num_evicted_tokens + place;
      if (at(blocks, place) != word_of(std::span(text).first(static_cast<std::size_t>(position) + 1)))
        FAIL("sequence " << slice.id << ": place " << place << " does not hold token " << position);
      const auto writer = writers_.find(slot(blocks, place));
      if (writer != writers_.end() && writer->second != index) ++served_.num_shared;
    }
  }

 private:
  EngineOptions options_;
  Scheduler scheduler_;
  std::vector<Word> memory_, host_memory_;            // [slots]
  std::map<SequenceId, std::vector<TokenId>> texts_;  // the prompt, and what has been computed
  std::vector<std::vector<Word>> drafts_;             // [sequences][drafted tokens], of this step
  std::map<std::size_t, std::size_t> writers_;        // of slots, by their place in the batch; of this step
  std::vector<TokenId>::const_iterator token_;        // of the batch, to be written next
  std::vector<std::uint64_t>::const_iterator mask_;
  std::mt19937 random_{7};
  ServedTexts served_;
};

inline ServedTexts serve(const EngineOptions& options, int num_blocks, const Workload& work, int num_host_blocks = 0) {
  return CachedMemory(options,
                      {.num_blocks = num_blocks, .max_position_embeddings = 100000, .num_host_blocks = num_host_blocks})
      .serve(work.requests, work.arrivals);
}

}  // namespace dculab
