// A KV cache made of words instead of vectors, and a scheduler that works on it: each slot holds a hash of the text up
// to its token, so whatever a block table shows can be checked against the text it should stand for. Every step is cut
// into two micro-batches, of which the first has read before the second writes.
#pragma once

#include <algorithm>
#include <map>
#include <span>
#include <vector>

#include "core/scheduler.hpp"
#include "tests/core/requests.hpp"
#include "tests/support/catch.hpp"

namespace dculab {

using Word = std::uint64_t;

// FNV-1a over a text.
inline Word word_of(std::span<const TokenId> text) {
  Word hash = 14695981039346656037U;
  for (const TokenId token : text) hash = (hash ^ static_cast<std::uint32_t>(token)) * 1099511628211U;
  return hash;
}

// Depends on everything so far, and on the seed: any token lost or repeated changes all that follow.
inline TokenId fake_token(const Sequence& sequence) {
  const Word hash = word_of(sequence.tokens) ^ (sequence.request.sampling.seed * 0x9E3779B97F4A7C15U);
  return static_cast<TokenId>((hash ^ (hash >> 29)) % 50);
}

struct ServedTexts {
  std::map<SequenceId, std::vector<TokenId>> tokens;  // prompt and generated
  std::map<SequenceId, int> num_cached_tokens;
  int num_preemptions = 0;
  SwapCounts swaps;
  int num_copies = 0;
  int num_unwritten = 0;
  int num_shifts = 0;
  int num_computed = 0;  // tokens of all steps
  int num_shared = 0;    // that a sequence read in the step in which another wrote them
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
    copy(step.swapped_in, host_memory_, memory_);
    copy(step.copies, memory_, memory_);
    served_.num_copies += static_cast<int>(step.copies.size());
    const std::size_t all = step.batch.sequences.size(), first = served_.num_computed % (all + 1);
    writers_.clear();
    token_ = step.batch.token_ids.begin();
    for (const auto& [begin, end] : {std::pair(std::size_t{}, first), std::pair(first, all)}) {
      for (std::size_t index = begin; index < end; ++index) write(step.batch, index);
      for (std::size_t index = begin; index < end; ++index) read(step.batch, index);
    }
    std::vector<TokenId> tokens;
    for (const Sequence* sequence : scheduler_.sampled()) {
      REQUIRE(std::ranges::equal(sequence->tokens, texts_.at(sequence->request.id)));
      tokens.push_back(fake_token(*sequence));
    }
    scheduler_.finish_step(verdicts_of(tokens), Seconds(1));
    for (const auto& sequence : scheduler_.take_finished()) {
      served_.tokens[sequence->request.id] = sequence->tokens;
      served_.num_cached_tokens[sequence->request.id] = sequence->num_cached_tokens;
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

  // All sequences of a micro-batch write before one of them reads, as in a layer.
  void write(const Batch& batch, std::size_t index) {
    const SequenceSlice& slice = batch.sequences[index];
    const std::vector<BlockId>& blocks = batch.block_tables[index];
    std::vector<TokenId>& text = texts_[slice.id];
    REQUIRE(slice.num_new_tokens >= 1);
    REQUIRE(slice.first_position() <= static_cast<int>(text.size()));
    if (slice.num_newly_evicted_tokens > 0) shift(slice, blocks, text);
    for (int i = 0; i < slice.num_new_tokens; ++i) {
      const auto position = static_cast<std::size_t>(slice.first_position() + i);
      if (position == text.size()) text.push_back(*token_);
      REQUIRE(text[position] == *token_++);
      const std::size_t place = slot(blocks, slice.num_computed_tokens + i);
      const Word right = word_of(std::span(text).first(position + 1));
      if (i < slice.num_unwritten_tokens) {
        REQUIRE(memory_.at(place) == right);
        continue;
      }
      memory_.at(place) = right;
      REQUIRE(writers_.emplace(place, index).second);
    }
    served_.num_unwritten += slice.num_unwritten_tokens;
    served_.num_computed += slice.num_new_tokens;
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
    for (int place = 0; place < slice.context_tokens(); ++place) {
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
  std::map<std::size_t, std::size_t> writers_;        // of slots, by their place in the batch that runs
  std::vector<TokenId>::const_iterator token_;        // of the batch that runs
  ServedTexts served_;
};

}  // namespace dculab
