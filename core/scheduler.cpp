#include "core/scheduler.hpp"

#include <algorithm>
#include <utility>

namespace dculab {
namespace {

void append(std::vector<TokenId>& destination, std::span<const TokenId> tokens) {
  destination.insert(destination.end(), tokens.begin(), tokens.end());
}

std::string tokens_text(std::int64_t count) { return std::to_string(count) + " tokens"; }

}  // namespace

Scheduler::Scheduler(const EngineOptions& options, const SchedulerLimits& limits, BatchContents contents)
    : options_(options),
      limits_(limits),
      contents_(contents),
      pool_(limits.num_blocks, options.block_size, limits.watermark) {}

std::optional<std::string> Scheduler::refusal(const Request& request) const {
  const auto prompt = static_cast<std::int64_t>(request.prompt_token_ids.size());
  if (prompt == 0) return "the prompt is empty";
  if (request.max_tokens < 1) return "max_tokens must be at least 1, not " + std::to_string(request.max_tokens);

  const std::int64_t total = prompt + request.max_tokens;
  const std::string what =
      "the prompt of " + tokens_text(prompt) + " with max_tokens " + std::to_string(request.max_tokens);
  if (total > limits_.max_position_embeddings)
    return what + " is longer than max_position_embeddings (" + std::to_string(limits_.max_position_embeddings) + ")";

  // The last generated token is handed out, never computed on.
  const int blocks = pool_.blocks_for(total - 1);
  if (blocks > pool_.num_blocks())
    return what + " needs " + std::to_string(blocks) + " KV blocks of " + tokens_text(pool_.block_size()) +
           ", but the pool has " + std::to_string(pool_.num_blocks());
  if (!options_.enable_chunked_prefill && prompt > options_.max_num_batched_tokens)
    return "the prompt of " + tokens_text(prompt) + " does not fit into one step of max_num_batched_tokens (" +
           std::to_string(options_.max_num_batched_tokens) + "), and chunked prefill is off";
  return std::nullopt;
}

void Scheduler::submit(Request request) { waiting_.push_back(std::make_unique<Sequence>(std::move(request))); }

ScheduledStep Scheduler::schedule() {
  token_budget_ = options_.max_num_batched_tokens;
  decodes_.clear();
  prefills_.clear();
  copies_.clear();
  sampled_.clear();

  schedule_decodes();
  schedule_running_prefills();
  admit();  // cannot bring back who was just preempted: it needs one block more than it gave up

  step_ = prefills_;
  step_.insert(step_.end(), decodes_.begin(), decodes_.end());
  return {.batch = make_batch(), .copies = std::exchange(copies_, {})};
}

void Scheduler::schedule_decodes() {
  // Oldest first, so that a victim, the youngest, is never one that has been scheduled already.
  for (std::size_t index = 0; index < running_.size(); ++index) {
    Sequence& sequence = *running_[index];
    if (sequence.phase() != Phase::decode) continue;
    const auto still_runs = [&] { return index < running_.size(); };
    while (still_runs() && !pool_.append(sequence.block_table, 1, copies_)) preempt_youngest();
    if (still_runs()) add(decodes_, sequence, 1);
  }
}

void Scheduler::schedule_running_prefills() {
  for (const auto& sequence : running_)
    if (sequence->phase() == Phase::prefill) add(prefills_, *sequence, chunk_of(*sequence));
}

void Scheduler::admit() {
  while (!waiting_.empty() && num_running() < options_.max_num_seqs) {
    Sequence& sequence = *waiting_.front();
    sequence.num_prefill_tokens = sequence.num_tokens();
    const int chunk = chunk_of(sequence);
    if (chunk == 0 || !has_room_for(sequence)) return;
    if (!pool_.append(sequence.block_table, sequence.num_tokens(), copies_)) return;
    sequence.status = SequenceStatus::running;
    running_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
    add(prefills_, sequence, chunk);
  }
}

bool Scheduler::has_room_for(const Sequence& sequence) const {
  // The watermark protects those who run; with nobody to protect it would only shut out the largest requests.
  return running_.empty() || pool_.can_admit(sequence.num_tokens());
}

int Scheduler::chunk_of(const Sequence& sequence) const {
  const int remaining = sequence.num_prefill_tokens - sequence.num_computed_tokens;
  // Without chunked prefill a whole prompt or nothing. Only what a preempted sequence must recompute can be longer
  // than a step, and that is split all the same: its user has seen its first tokens.
  const bool whole = !options_.enable_chunked_prefill && remaining <= options_.max_num_batched_tokens &&
                     sequence.num_computed_tokens == 0;
  if (whole) return remaining <= token_budget_ ? remaining : 0;
  return std::min(remaining, token_budget_);
}

void Scheduler::preempt_youngest() {
  std::unique_ptr<Sequence> victim = std::move(running_.back());
  running_.pop_back();
  pool_.release(victim->block_table);
  victim->num_computed_tokens = 0;
  victim->num_prefill_tokens = 0;
  victim->status = SequenceStatus::waiting;
  ++victim->num_preemptions;
  ++num_preemptions_;
  waiting_.push_front(std::move(victim));
}

void Scheduler::add(std::vector<Entry>& entries, Sequence& sequence, int num_new_tokens) {
  entries.push_back({.sequence = &sequence, .num_new_tokens = num_new_tokens});
  token_budget_ -= num_new_tokens;
}

Batch Scheduler::make_batch() {
  Batch batch;
  batch.sequences.reserve(step_.size());
  for (const auto& [sequence, num_new_tokens] : step_) {
    const SequenceSlice slice{.id = sequence->request.id,
                              .phase = sequence->phase(),
                              .num_computed_tokens = sequence->num_computed_tokens,
                              .num_new_tokens = num_new_tokens,
                              .needs_logits = sequence->num_computed_tokens + num_new_tokens == sequence->num_tokens()};
    batch.sequences.push_back(slice);
    if (slice.needs_logits) sampled_.push_back(sequence);
    if (contents_ == BatchContents::lengths_only) continue;

    append(batch.token_ids,
           std::span(sequence->tokens)
               .subspan(static_cast<std::size_t>(slice.num_computed_tokens), static_cast<std::size_t>(num_new_tokens)));
    const auto blocks =
        sequence->block_table.blocks().first(static_cast<std::size_t>(pool_.blocks_for(slice.context_tokens())));
    batch.block_tables.emplace_back(blocks.begin(), blocks.end());
  }
  return batch;
}

void Scheduler::finish_step(std::span<const TokenId> tokens, Seconds now) {
  for (const auto& [sequence, num_new_tokens] : step_) sequence->num_computed_tokens += num_new_tokens;
  for (std::size_t row = 0; row < sampled_.size(); ++row) accept(*sampled_[row], tokens[row], now);
  step_.clear();
  retire_finished();
}

void Scheduler::accept(Sequence& sequence, TokenId token, Seconds now) {
  sequence.tokens.push_back(token);
  sequence.token_times.push_back(now);
  const Request& request = sequence.request;
  if (request.eos == EosHandling::stop && std::ranges::count(request.stop_tokens, token) > 0)
    sequence.finish_reason = FinishReason::stop;
  else if (sequence.num_generated() >= request.max_tokens)
    sequence.finish_reason = FinishReason::length;
}

void Scheduler::retire_finished() {
  const auto ended = [](const auto& sequence) { return sequence->finish_reason != FinishReason::none; };
  for (auto& sequence : running_) {
    if (!ended(sequence)) continue;
    pool_.release(sequence->block_table);
    sequence->status = SequenceStatus::finished;
    finished_.push_back(std::move(sequence));
  }
  std::erase(running_, nullptr);
}

std::vector<std::unique_ptr<Sequence>> Scheduler::take_finished() {
  sampled_.clear();
  return std::exchange(finished_, {});
}

}  // namespace dculab
