#include "core/scheduler.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "core/kv/table.hpp"

namespace dculab {
namespace {

template <typename Value, typename Values>
void append(std::vector<Value>& destination, const Values& values) {
  destination.insert(destination.end(), values.begin(), values.end());
}

PrefixCaching prefix_caching(const EngineOptions& options) {
  return options.enable_prefix_caching ? PrefixCaching::on : PrefixCaching::off;
}

}  // namespace

Scheduler::Scheduler(const EngineOptions& options, const SchedulerLimits& limits, BatchContents contents)
    : options_(options),
      limits_(limits),
      contents_(contents),
      draft_depth_(options.speculative_config.num_speculative_tokens()),
      pool_(limits.num_blocks, options.block_size, limits.watermark, prefix_caching(options), options.prefix_eviction),
      host_pool_(limits.num_host_blocks, options.block_size) {
  if (options.groups_by_load) groups_.emplace(*options.groups_by_load);
}

void Scheduler::submit(Request request) {
  Sequence& sequence = *waiting_.emplace_back(std::make_unique<Sequence>(std::move(request)));
  if (options_.kv_skip.duplicate_prompts) sequence.prompt_hash = extend({}, sequence.tokens);
}

ScheduledStep Scheduler::schedule() {
  token_budget_ = options_.max_num_batched_tokens;
  decodes_.clear();
  prefills_.clear();

  schedule_decodes();
  schedule_drafts();
  schedule_running_prefills();
  choose_head_set();
  admit();  // cannot bring back who was just preempted: it needs one block more than it gave up

  step_ = prefills_;
  step_.insert(step_.end(), decodes_.begin(), decodes_.end());
  drafts_.clear();
  sampled_.clear();
  sampled_entries_.clear();
  ScheduledStep step{.batch = make_batch(HeadSet::many),
                     .few_heads = groups_ ? make_batch(HeadSet::few) : Batch(),
                     .sequences = scheduled_sequences(),
                     .swapped_out = std::exchange(swapped_out_, {}),
                     .copies = std::exchange(copies_, {}),
                     .swapped_in = std::exchange(swapped_in_, {}),
                     .received = std::exchange(received_, {})};
  if (groups_ && !step_.empty()) {
    ++head_sets_.steps;
    if (!step.batch.sequences.empty() && !step.few_heads.sequences.empty()) ++head_sets_.steps_of_both;
  }
  return step;
}

void Scheduler::choose_head_set() {
  if (!groups_) return;
  const double used = pool_.num_blocks() - pool_.num_free();
  admitted_set_ = groups_->look(num_waiting(), used / pool_.num_blocks());
  head_sets_.switches = groups_->switches();
}

void Scheduler::schedule_decodes() {
  // Oldest first, so that a victim, the youngest, is never one that has been scheduled already.
  for (std::size_t index = 0; index < running_.size(); ++index) {
    Sequence& sequence = *running_[index];
    if (sequence.phase() != Phase::decode) continue;
    const auto still_runs = [&] { return index < running_.size(); };
    const int evicted = evict(sequence);
    while (still_runs() && !reserve(sequence, sequence.num_tokens_in_cache() + 1)) preempt_youngest();
    if (still_runs()) add(decodes_, sequence, 1, evicted);
  }
}

void Scheduler::schedule_running_prefills() {
  for (const auto& sequence : running_) {
    if (sequence->phase() != Phase::prefill) continue;
    const int chunk = chunk_of(*sequence);
    if (chunk == 0) continue;
    const int evicted = evict(*sequence);
    // Reserved when it was admitted, or just given back: there is room.
    if (!reserve(*sequence, sequence->num_tokens_in_cache() + chunk))
      throw std::logic_error("scheduler: a running prefill has lost its blocks");
    add(prefills_, *sequence, chunk, evicted);
    publish_chunk(*sequence, chunk);
  }
}

void Scheduler::admit() {
  const auto is_member = [](const Sequence& sequence) { return sequence.num_preemptions > 0 || sequence.sample > 0; };
  // Members that wait stand in front.
  if (running_.empty() && (waiting_.empty() || !is_member(*waiting_.front()))) batch_ = {};
  while (!waiting_.empty() && num_running() < options_.max_num_seqs) {
    Sequence& sequence = *waiting_.front();
    const bool joins = !is_member(sequence);
    if (options_.batching == Batching::per_batch && joins && batch_.is_complete) return;
    if (!admit(sequence)) {
      if (chunk_of(sequence) > 0) batch_.is_complete = true;  // there is no room, not only none in this step
      return give_up_blocks(sequence);
    }
    const int chunk = chunk_of(sequence);
    const bool decodes = sequence.phase() == Phase::decode;  // its prompt was received, or is still cached
    if (sequence.num_preemptions == 0 && !decodes)
      sequence.num_cached_tokens = sequence.num_duplicate_tokens > 0 ? 0 : sequence.num_computed_tokens;
    sequence.status = SequenceStatus::running;
    running_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
    add(decodes ? decodes_ : prefills_, sequence, chunk, 0);
    publish_chunk(sequence, chunk);
    if (sequence.request.received_kv) receive(sequence);
    // A preempted sequence that finds its own blocks again is no second user.
    if (sequence.num_preemptions == 0)
      pool_.count_uses(sequence.block_table, sequence.num_shared_tokens / options_.block_size);
    if (joins && ++batch_.num_members == options_.max_num_seqs) batch_.is_complete = true;
  }
  batch_.is_complete = true;
}

// Takes what is cached of the sequence, and the blocks for the rest. When there is no room it may be left with some.
bool Scheduler::admit(Sequence& sequence) {
  if (sequence.status == SequenceStatus::swapped) return swap_in(sequence);
  if (sequence.num_preemptions == 0 && sequence.sample == 0) sequence.head_set = admitted_set_;
  const bool replays = kv_policy(options_.kv_retention.policy).has_budget;
  sequence.num_prefill_tokens = replays ? sequence.num_prompt_tokens() : sequence.num_tokens();
  sequence.num_shared_tokens = adopt(sequence);
  sequence.num_computed_tokens = std::min(sequence.num_shared_tokens, sequence.num_tokens() - 1);
  const int received = sequence.num_preemptions == 0 ? sequence.request.num_received_tokens : 0;
  sequence.num_computed_tokens = std::max(sequence.num_computed_tokens, received);
  if (received > 0 && received == sequence.num_tokens() - 1)
    sequence.num_computed_tokens = sequence.num_prefill_tokens = received;
  if (chunk_of(sequence) == 0 || !has_room_for(sequence)) return false;
  return reserve(sequence, std::min<std::int64_t>(sequence.num_tokens(), capacity()));
}

// Sequences that are admitted later in this step share the blocks that this one is about to fill. In each layer the K
// and V of all sequences are written before any is read, and where a step is cut in two, the first sequences of the
// batch run first. No sequence is preempted between this and the step.
void Scheduler::publish_chunk(Sequence& sequence, int num_new_tokens) {
  publish(sequence, sequence.num_computed_tokens + num_new_tokens);
}

// What others have computed of the sequence and the prefix cache does not have.
void Scheduler::receive(Sequence& sequence) {
  const int first = pool_.blocks_for(sequence.num_shared_tokens);
  const int end = pool_.blocks_for(sequence.request.num_received_tokens);
  const auto kv = std::exchange(sequence.request.received_kv, nullptr);
  if (first >= end || sequence.num_preemptions > 0) return;
  const auto blocks =
      sequence.block_table.blocks().subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(end - first));
  received_.push_back({.kv = kv, .first_block = first, .blocks = {blocks.begin(), blocks.end()}});
}

bool Scheduler::has_room_for(const Sequence& sequence) const {
  // The watermark protects running sequences. Where there are none, it would only shut out the largest requests.
  const std::int64_t tokens = std::min<std::int64_t>(sequence.num_tokens(), capacity());
  return running_.empty() || pool_.can_admit(slots_for(sequence, tokens), sequence.block_table);
}

// Room for the first `tokens_in_cache` tokens that are kept of a sequence.
bool Scheduler::reserve(Sequence& sequence, std::int64_t tokens_in_cache) {
  const std::int64_t missing = slots_for(sequence, tokens_in_cache) - sequence.block_table.num_tokens();
  return missing <= 0 || pool_.append(sequence.block_table, static_cast<int>(missing), copies_);
}

// Makes way for the next token where a policy says so. Returns how many tokens went.
int Scheduler::evict(Sequence& sequence) {
  const KvRetention& retention = options_.kv_retention;
  const int count = kv_tokens_to_evict(retention, options_.block_size, sequence.num_tokens_in_cache());
  sequence.num_evicted_tokens += count;
  // A new token that takes one token's place takes its slot.
  if (count > 0 && kv_policy(retention.policy).eviction == KvEviction::oldest_block)
    pool_.drop_first_block(sequence.block_table);
  return count;
}

std::int64_t Scheduler::num_tokens_in_cache() const {
  std::int64_t tokens = 0;
  for (const auto& sequence : running_) tokens += slots_for(*sequence, sequence->num_tokens_in_cache());
  return tokens;
}

void Scheduler::give_up_blocks(Sequence& sequence) {
  pool_.release(sequence.block_table);
  if (sequence.status == SequenceStatus::swapped) return;  // the host has what was computed
  sequence.num_computed_tokens = 0;
  sequence.num_evicted_tokens = 0;
  sequence.num_shared_tokens = 0;
  sequence.num_duplicate_tokens = 0;
  sequence.num_prefill_tokens = 0;
}

int Scheduler::chunk_of(const Sequence& sequence) const {
  if (sequence.phase() == Phase::decode) return std::min(token_budget_, 1);  // its prompt is there
  const int remaining = sequence.num_prefill_tokens - sequence.num_computed_tokens;
  // Without chunked prefill a whole prompt or nothing. Only what a preempted sequence must recompute can be longer
  // than a step, and that is split all the same: its user has seen its first tokens.
  const bool whole = !options_.enable_chunked_prefill && remaining <= options_.max_num_batched_tokens &&
                     sequence.status == SequenceStatus::waiting;
  if (whole) return remaining <= token_budget_ ? remaining : 0;
  const int in_cache = sequence.num_tokens_in_cache();
  const std::int64_t room =
      capacity() - in_cache + kv_tokens_to_evict(options_.kv_retention, options_.block_size, in_cache);
  return static_cast<int>(std::min<std::int64_t>(room, std::min(remaining, token_budget_)));
}

void Scheduler::preempt_youngest() {
  std::unique_ptr<Sequence> victim = std::move(running_.back());
  running_.pop_back();
  victim->status = swap_out(*victim) ? SequenceStatus::swapped : SequenceStatus::waiting;
  if (victim->status == SequenceStatus::waiting) give_up_blocks(*victim);
  ++victim->num_preemptions;
  ++num_preemptions_;
  waiting_.push_front(std::move(victim));
}

void Scheduler::add(std::vector<Entry>& entries, Sequence& sequence, int num_new_tokens, int num_newly_evicted_tokens) {
  entries.push_back(
      {.sequence = &sequence, .num_new_tokens = num_new_tokens, .num_newly_evicted_tokens = num_newly_evicted_tokens});
  token_budget_ -= num_new_tokens;
}

SequenceSlice Scheduler::make_slice(const Entry& entry) const {
  const Sequence& sequence = *entry.sequence;
  const int num_new_tokens = entry.num_new_tokens;
  const int shared = sequence.num_shared_tokens - sequence.num_computed_tokens;
  const int drafted = entry.num_draft_tokens;
  return {
      .id = sequence.request.id,
      .phase = sequence.phase(),
      .num_computed_tokens = sequence.num_tokens_in_cache(),
      .num_new_tokens = num_new_tokens,
      .num_logits = sequence.num_computed_tokens + num_new_tokens - drafted == sequence.num_tokens() ? 1 + drafted : 0,
      .num_evicted_tokens = sequence.num_evicted_tokens,
      .num_newly_evicted_tokens = entry.num_newly_evicted_tokens,
      .num_unwritten_tokens = std::clamp(shared, 0, num_new_tokens - drafted),
      .num_draft_tokens = drafted,
      .num_tree_tokens = entry.num_tree_tokens};
}

// Of the step's sequences with a set of heads; those that are sampled join sampled_.
Batch Scheduler::make_batch(HeadSet set) {
  Batch batch;
  batch.head_set = set;
  batch.sequences.reserve(step_.size());
  for (std::size_t index = 0; index < step_.size(); ++index) {
    const Entry& entry = step_[index];
    Sequence& sequence = *entry.sequence;
    if (sequence.head_set != set) continue;
    const SequenceSlice slice = make_slice(entry);
    batch.sequences.push_back(slice);
    if (slice.num_logits > 0) {
      sampled_.push_back(&sequence);
      sampled_entries_.push_back(index);
      batch.filters_logits |= sequence.request.sampling.filters();
    }
    if (contents_ == BatchContents::lengths_only) continue;

    append(batch.token_ids, std::span(sequence.tokens)
                                .subspan(static_cast<std::size_t>(sequence.num_computed_tokens),
                                         static_cast<std::size_t>(slice.num_new_tokens - slice.num_draft_tokens)));
    if (slice.num_draft_tokens > 0)
      for (const DraftNode& node : drafts_[index].nodes) batch.token_ids.push_back(node.token);
    if (slice.num_tree_tokens > 0) append(batch.tree_masks, visibility(drafts_[index]));
    const int num_blocks = pool_.blocks_for(in_slots(set, slice.context_tokens()));
    const auto blocks = sequence.block_table.blocks().first(static_cast<std::size_t>(num_blocks));
    batch.block_tables.emplace_back(blocks.begin(), blocks.end());
  }
  return batch;
}

}  // namespace dculab
