// What a step that is done changes: tokens that were computed, drafts that were accepted, sequences that have ended.
#include <algorithm>
#include <iterator>
#include <utility>

#include "core/scheduler.hpp"

namespace dculab {

std::vector<SlotMove> Scheduler::finish_step(std::span<const Verdict> verdicts, Seconds now) {
  for (const Entry& entry : step_) record_computed(*entry.sequence, entry.num_new_tokens - entry.num_draft_tokens);
  std::vector<SlotMove> moves;
  for (std::size_t index = 0; index < sampled_.size(); ++index) {
    Sequence& sequence = *sampled_[index];
    const Entry& entry = step_[sampled_entries_[index]];
    if (sequence.num_generated() == 0 && sequence.request.n > 1) start_samples(sequence);
    if (entry.num_draft_tokens == 0) {
      accept(sequence, verdicts[index].tokens.front(), now);
      continue;
    }
    gather_path(entry, verdicts[index], moves);
    const int accepted = accept(sequence, verdicts[index], now);
    record_computed(sequence, accepted);
    pool_.truncate(sequence.block_table, limits_.kv_demand(sequence.num_tokens_in_cache()));
  }
  retire_finished();
  return moves;
}

void Scheduler::record_computed(Sequence& sequence, int num_tokens) {
  sequence.num_computed_tokens += num_tokens;
  publish(sequence, sequence.num_computed_tokens);
}

// The first `num_tokens` tokens, as far as they have blocks and others may read them.
void Scheduler::publish(Sequence& sequence, int num_tokens) {
  const std::span<const TokenId> tokens = shareable_tokens(sequence);
  const int held = std::min({num_tokens, sequence.block_table.num_tokens(), static_cast<int>(tokens.size())});
  pool_.publish(sequence.block_table, tokens.first(static_cast<std::size_t>(held)));
}

// A path's nodes move up to where their tokens stand in the text. They never overwrite one that is still to be moved:
// the node of a place stands there or behind it.
void Scheduler::gather_path(const Entry& entry, const Verdict& verdict, std::vector<SlotMove>& moves) const {
  if (contents_ == BatchContents::lengths_only) return;
  const Sequence& sequence = *entry.sequence;
  const int first = sequence.num_tokens_in_cache();  // where the first accepted token belongs
  for (int place = 0; place < std::ssize(verdict.path); ++place) {
    const int node = verdict.path[static_cast<std::size_t>(place)];
    if (node == place) continue;
    moves.push_back({.source = pool_.slot(sequence.block_table, first + node),
                     .destination = pool_.slot(sequence.block_table, first + place)});
  }
}

// Appends tokens up to the one that ends the sequence. Returns how many of them were drafted.
int Scheduler::accept(Sequence& sequence, const Verdict& verdict, Seconds now) {
  int count = 0;
  for (const TokenId token : verdict.tokens) {
    accept(sequence, token, now);
    ++count;
    if (sequence.finish_reason != FinishReason::none) break;
  }
  return std::min(count, static_cast<int>(verdict.path.size()));
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

// The other samples of a prompt that has just been computed. Each computes its last token once more, for the logits;
// those that find no place among the running wait without blocks.
void Scheduler::start_samples(Sequence& first) {
  const int places = std::min(options_.max_num_seqs, options_.max_num_batched_tokens) - num_running();
  std::vector<std::unique_ptr<Sequence>> started, queued;
  for (int sample = 1; sample < first.request.n; ++sample) {
    auto sequence = std::make_unique<Sequence>(first.request);
    sequence->sample = sample;
    sequence->head_set = first.head_set;
    sequence->prompt_hash = first.prompt_hash;
    sequence->request.n = 1;
    sequence->request.id += sample;
    sequence->request.sampling.seed += static_cast<std::uint64_t>(sample);
    if (sample > places) {
      queued.push_back(std::move(sequence));
      continue;
    }
    sequence->block_table = pool_.fork(first.block_table);
    sequence->num_prefill_tokens = sequence->num_shared_tokens = sequence->num_tokens();
    sequence->num_computed_tokens = sequence->num_tokens() - 1;
    sequence->status = SequenceStatus::running;
    started.push_back(std::move(sequence));
  }
  first.request.n = 1;
  const auto place = std::ranges::find(running_, &first, [](const auto& sequence) { return sequence.get(); });
  running_.insert(place + 1, std::make_move_iterator(started.begin()), std::make_move_iterator(started.end()));
  waiting_.insert(waiting_.begin(), std::make_move_iterator(queued.begin()), std::make_move_iterator(queued.end()));
}

void Scheduler::retire_finished() {
  const auto ended = [](const auto& sequence) { return sequence->finish_reason != FinishReason::none; };
  for (auto& sequence : running_) {
    if (!ended(sequence)) continue;
    pool_.release(sequence->block_table);
    const auto set = static_cast<std::size_t>(sequence->head_set);
    ++head_sets_.requests[set];
    head_sets_.tokens[set] += sequence->num_generated();
    sequence->status = SequenceStatus::finished;
    finished_.push_back(std::move(sequence));
  }
  std::erase(running_, nullptr);
}

std::unique_ptr<Sequence> Scheduler::abort(SequenceId id) {
  const auto take = [id](auto& sequences) {
    const auto place = std::ranges::find(sequences, id, [](const auto& sequence) { return sequence->request.id; });
    if (place == sequences.end()) return std::unique_ptr<Sequence>();
    std::unique_ptr<Sequence> taken = std::move(*place);
    sequences.erase(place);
    return taken;
  };
  std::unique_ptr<Sequence> taken = take(running_);
  if (!taken) taken = take(waiting_);
  if (!taken) return nullptr;
  pool_.release(taken->block_table);
  host_pool_.release(taken->host_table);
  taken->status = SequenceStatus::finished;
  return taken;
}

std::vector<std::unique_ptr<Sequence>> Scheduler::take_finished() {
  sampled_.clear();
  sampled_entries_.clear();
  step_.clear();
  return std::exchange(finished_, {});
}

}  // namespace dculab
