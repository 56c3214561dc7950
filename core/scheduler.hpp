// Which sequences work in the next step: continuous batching with vLLM's rules and vLLM's words.
//
// First come, first served. Decodes come first, one token each; prefills, in chunks if allowed, fill what is left of
// max_num_batched_tokens. A prompt's blocks are reserved when it is admitted. When a decode finds no free block, the
// youngest running sequence is preempted: it loses its blocks, goes to the front of the queue and is recomputed, or,
// with PreemptionMode::swap and while the host has room, its blocks are copied to host memory and back when its turn
// comes, before anybody who came later; what prefix caching still finds on the device is not copied back.
// Prefix caching: who is admitted takes the blocks that hold the beginning of its tokens, or that others fill in this
// very step; one token at least is computed, for the logits. Samples of one prompt: when it has been computed, each
// gets a fork of its blocks. With KvSkip::duplicate_prompts a request whose prompt is that of one that runs takes the
// blocks of all of it, and computes the last token for the logits. Source of the rules: vLLM,
// vllm/v1/core/sched/scheduler.py, and vllm/core/scheduler.py for the reservation and swapping (where the samples of a
// prompt swap together; here each is a sequence of its own).
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/batch.hpp"
#include "core/block_pool.hpp"
#include "core/drafter.hpp"
#include "core/engine_options.hpp"
#include "core/executor.hpp"
#include "core/groups_by_load.hpp"
#include "core/kv/retention.hpp"
#include "core/request.hpp"

namespace dculab {

// A step that is only priced needs no token ids and no block tables; filling them costs time per context token.
enum class BatchContents : std::uint8_t { lengths_only, executable };

struct SchedulerLimits {
  int num_blocks = 0;
  int max_position_embeddings = 0;
  double watermark = BlockPool::kDefaultWatermark;
  int num_host_blocks = 0;              // see num_host_blocks(EngineOptions)
  KvDemand kv_demand{};                 // of a step that is only priced; what runs has a slot for each token
  int draft_context = kLongestContext;  // tokens that the drafter can look back on
  int few_tokens_per_slot = 1;          // tokens of few heads in the bytes of one of many; 1: there is one set
};

// KV blocks whose contents come from another executor.
struct ReceivedBlocks {
  std::shared_ptr<const std::vector<std::byte>> kv;  // Request::received_kv
  int first_block = 0;                               // of it
  std::vector<BlockId> blocks;                       // where that one and those behind it belong
};

struct ScheduledStep {
  Batch batch;        // empty when there is nothing to do; one new token of each sequence that decodes
  Batch few_heads{};  // of the sequences with few heads, where there are two sets: to run after the other
  std::vector<ScheduledSequence> sequences;  // of the batch, where tokens may be drafted; empty without speculation
  // To be made before the batch runs, in this order.
  std::vector<BlockCopy> swapped_out;  // to the host's blocks
  std::vector<BlockCopy> copies;       // within the pool; from blocks that may be given out again, but for swapping in
  std::vector<BlockCopy> swapped_in;   // from the host's blocks
  std::vector<ReceivedBlocks> received{};
};

// What swapping has moved so far.
struct SwapCounts {
  std::int64_t preemptions = 0;  // by swap; the others were recomputed
  std::int64_t blocks_out = 0, blocks_in = 0;

  SwapCounts& operator+=(const SwapCounts& other) {
    preemptions += other.preemptions;
    blocks_out += other.blocks_out;
    blocks_in += other.blocks_in;
    return *this;
  }
  friend bool operator==(const SwapCounts&, const SwapCounts&) = default;
};

class Scheduler {
 public:
  // Precondition: problems(options) is empty.
  Scheduler(const EngineOptions& options, const SchedulerLimits& limits,
            BatchContents contents = BatchContents::executable);

  // Why the request could never be served, or nothing.
  [[nodiscard]] std::optional<std::string> refusal(const Request& request) const;

  // Queues a request. Precondition: refusal(request) is empty.
  void submit(Request request);

  [[nodiscard]] bool idle() const { return waiting_.empty() && running_.empty(); }

  // Chooses the next step. Each step must be finished before the next is scheduled.
  [[nodiscard]] ScheduledStep schedule();

  // The batch of the scheduled step with trees of drafted tokens, one for each sequence of the batch; room that they do
  // not need is given back.
  [[nodiscard]] Batch batch_with_drafts(std::vector<DraftTree> drafts);

  // The sequences whose logits the scheduled step computes, in the order of the batch, or of the two: a row of logits
  // each, and one more for each token of its draft. Valid until take_finished().
  [[nodiscard]] std::span<Sequence* const> sampled() const { return sampled_; }

  // The draft of a sampled() sequence; empty without one.
  [[nodiscard]] const DraftTree& draft_of(std::size_t sampled) const {
    return drafts_.empty() ? no_draft_ : drafts_[sampled_entries_[sampled]];
  }

  // Records that the step is done at `now` with `verdicts`, one per sampled() sequence, each of which takes the tokens
  // up to the one that ends it. Those that have ended give their blocks back, the others the slots of rejected tokens.
  // Returns the moves that bring accepted paths of trees together; for the executor, before the next step.
  std::vector<SlotMove> finish_step(std::span<const Verdict> verdicts, Seconds now);

  // Takes a sequence out that waits or runs, and gives its blocks back; nothing where there is none of that id. Between
  // steps only. Of a request with several samples, those that have started are sequences of their own, and the others
  // go with the first. vLLM's abort_requests.
  [[nodiscard]] std::unique_ptr<Sequence> abort(SequenceId id);

  // Hands over the sequences that ended since the last call.
  [[nodiscard]] std::vector<std::unique_ptr<Sequence>> take_finished();

  [[nodiscard]] const BlockPool& pool() const { return pool_; }
  [[nodiscard]] const BlockPool& host_pool() const { return host_pool_; }
  [[nodiscard]] int num_waiting() const { return static_cast<int>(waiting_.size()); }
  [[nodiscard]] int num_running() const { return static_cast<int>(running_.size()); }
  [[nodiscard]] int num_preemptions() const { return num_preemptions_; }
  [[nodiscard]] const SwapCounts& swaps() const { return swaps_; }
  [[nodiscard]] const HeadSetCounts& head_sets() const { return head_sets_; }
  [[nodiscard]] int tokens_per_slot(HeadSet set) const { return set == HeadSet::few ? limits_.few_tokens_per_slot : 1; }
  [[nodiscard]] std::int64_t num_tokens_in_cache() const;  // of those running, as KvDemand; shared ones count for each

 private:
  struct Entry {
    Sequence* sequence = nullptr;
    int num_new_tokens = 0;
    int num_newly_evicted_tokens = 0;
    int max_draft_tokens = 0, max_draft_depth = 0;
    int num_draft_tokens = 0, num_tree_tokens = 0;  // of its draft in drafts_, as SequenceSlice
  };

  void schedule_decodes();
  void schedule_drafts();
  void schedule_draft(Entry& entry, int most_tokens);
  void schedule_running_prefills();
  void admit();
  void publish_chunk(Sequence& sequence, int num_new_tokens);
  void publish(Sequence& sequence, int num_tokens);
  void preempt_youngest();
  [[nodiscard]] bool admit(Sequence& sequence);
  [[nodiscard]] int adopt(Sequence& sequence);
  [[nodiscard]] std::span<const TokenId> shareable_tokens(const Sequence& sequence) const;
  [[nodiscard]] const Sequence* duplicate_of(const Sequence& sequence) const;
  [[nodiscard]] bool has_prompt(const Sequence& sequence) const;
  [[nodiscard]] bool swap_out(Sequence& sequence);
  [[nodiscard]] bool swap_in(Sequence& sequence);
  void receive(Sequence& sequence);
  [[nodiscard]] bool has_room_for(const Sequence& sequence) const;
  [[nodiscard]] bool reserve(Sequence& sequence, std::int64_t tokens_in_cache);
  // Slots of the pool, which is counted in tokens of many heads.
  [[nodiscard]] std::int64_t in_slots(HeadSet set, std::int64_t tokens) const {
    return (tokens + tokens_per_slot(set) - 1) / tokens_per_slot(set);
  }
  [[nodiscard]] std::int64_t slots_for(const Sequence& sequence, std::int64_t tokens) const {
    return in_slots(sequence.head_set, limits_.kv_demand(tokens));
  }
  [[nodiscard]] int evict(Sequence& sequence);
  void give_up_blocks(Sequence& sequence);
  [[nodiscard]] std::int64_t capacity() const { return kv_capacity(options_.kv_retention, options_.block_size); }
  [[nodiscard]] int chunk_of(const Sequence& sequence) const;
  void add(std::vector<Entry>& entries, Sequence& sequence, int num_new_tokens, int num_newly_evicted_tokens);
  void choose_head_set();
  [[nodiscard]] Batch make_batch(HeadSet set);
  [[nodiscard]] SequenceSlice make_slice(const Entry& entry) const;
  [[nodiscard]] std::vector<ScheduledSequence> scheduled_sequences() const;
  void fill_draft(Entry& entry, DraftTree& draft);
  void record_computed(Sequence& sequence, int num_tokens);
  void start_samples(Sequence& first);
  [[nodiscard]] int accept(Sequence& sequence, const Verdict& verdict, Seconds now);
  static void accept(Sequence& sequence, TokenId token, Seconds now);
  void gather_path(const Entry& entry, const Verdict& verdict, std::vector<SlotMove>& moves) const;
  void retire_finished();

  EngineOptions options_;
  SchedulerLimits limits_;
  BatchContents contents_;
  int draft_depth_;  // of the shape of drafts
  BlockPool pool_;
  BlockPool host_pool_;

  // Both in order of arrival, and everyone running came before everyone waiting. Those running are never more than
  // max_num_batched_tokens, and one at most is in the middle of its prefill: each was admitted with a token to spare.
  // (Samples that have just been forked are too, but one token is all they have left.)
  std::vector<std::unique_ptr<Sequence>> running_;
  std::deque<std::unique_ptr<Sequence>> waiting_;
  std::vector<std::unique_ptr<Sequence>> finished_;
  int num_preemptions_ = 0;
  SwapCounts swaps_;
  std::optional<HeadSetController> groups_;  // of a model with two sets of heads
  HeadSet admitted_set_ = HeadSet::many;     // of who is admitted in this step
  HeadSetCounts head_sets_;

  // Batching::per_batch: no sequence joins a complete batch before all its members have ended.
  struct StaticBatch {
    int num_members = 0;
    bool is_complete = false;
  };
  StaticBatch batch_;

  // The step being scheduled or run.
  int token_budget_ = 0;
  std::vector<Entry> decodes_;
  std::vector<Entry> prefills_;
  std::vector<Entry> step_;        // prefills, then decodes
  std::vector<DraftTree> drafts_;  // of step_; none at all in a step without drafts
  DraftTree no_draft_;             // of each sequence in such a step
  std::vector<Sequence*> sampled_;
  std::vector<std::size_t> sampled_entries_;  // of step_
  std::vector<BlockCopy> swapped_out_, swapped_in_, copies_;
  std::vector<ReceivedBlocks> received_;
};

}  // namespace dculab
