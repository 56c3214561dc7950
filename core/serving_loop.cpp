#include "core/serving_loop.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/error.hpp"

namespace dculab {

void ServingReport::add(const Sequence& sequence, RequestRecords records) {
  if (records == RequestRecords::keep)
    requests.push_back({.id = sequence.request.id,
                        .num_prompt_tokens = sequence.num_prompt_tokens(),
                        .num_generated = sequence.num_generated(),
                        .num_cached_tokens = sequence.num_cached_tokens,
                        .num_preemptions = sequence.num_preemptions,
                        .finish_reason = sequence.finish_reason,
                        .arrival = sequence.request.arrival,
                        .ttft = sequence.ttft(),
                        .tpot = sequence.tpot(),
                        .latency = sequence.latency()});
  if (sequence.sample == 0) num_prompt_tokens += sequence.num_prompt_tokens();
  if (sequence.sample == 0) num_padding_tokens += sequence.request.num_padding_tokens;
  num_cached_tokens += sequence.num_cached_tokens;
  num_duplicate_tokens += sequence.num_duplicate_tokens;
  num_generated_tokens += sequence.num_generated();
  num_preemptions += sequence.num_preemptions;
}

ServingLoop::ServingLoop(ServingParts parts, ServingCallbacks callbacks)
    : parts_(parts), callbacks_(std::move(callbacks)) {}

std::optional<std::string> ServingLoop::submit(Request request) {
  if (auto reason = parts_.scheduler.refusal(request)) return reason;
  first_arrival_ = first_arrival_ ? std::min(*first_arrival_, request.arrival) : request.arrival;
  const auto place = std::ranges::upper_bound(pending_, request.arrival, {}, &Request::arrival);
  pending_.insert(place, std::move(request));
  return std::nullopt;
}

bool ServingLoop::step() {
  Seconds begin = parts_.clock.now();
  queue_arrivals(parts_.scheduling == Scheduling::one_step_ahead ? step_before_ : begin);
  if (parts_.scheduler.idle()) {
    if (pending_.empty() && next_) take_from_source();
    if (pending_.empty()) return false;
    parts_.clock.wait_until(pending_.front().arrival);
    begin = parts_.clock.now();
    queue_arrivals(begin);
  }
  step_before_ = begin;
  const StepResult result = execute(parts_.scheduler.schedule());
  choose_tokens();
  const Seconds end = parts_.clock.now();
  if (callbacks_.on_step && !plan_.batch.sequences.empty())
    callbacks_.on_step({begin, end, plan_, result, parts_.scheduler, drafting_, drafts_});
  hand_out_tokens(end);
  for (const auto& sequence : parts_.scheduler.take_finished()) record(*sequence);
  return true;
}

void ServingLoop::run() {
  while (step()) {
  }
}

void ServingLoop::run(RequestSource& source) {
  source_ = &source;
  next_ = source.next();
  run();
  source_ = nullptr;
}

void ServingLoop::take_from_source() {
  const SequenceId id = next_->id;
  const Scheduler& scheduler = parts_.scheduler;
  require_room_for(*next_, scheduler.num_waiting() + scheduler.num_running() + std::ssize(pending_), tokens_of_source_);
  tokens_of_source_ += std::ssize(next_->prompt_token_ids);
  if (const auto reason = submit(*std::move(next_)))
    throw InputError("request " + std::to_string(id + 1) + ": " + *reason);
  next_ = source_->next();
}

void ServingLoop::queue_arrivals(Seconds now) {
  while (next_ && next_->arrival <= now) take_from_source();
  while (!pending_.empty() && pending_.front().arrival <= now) {
    parts_.scheduler.submit(std::move(pending_.front()));
    pending_.pop_front();
  }
}

StepResult ServingLoop::execute(ScheduledStep scheduled) {
  drafting_ = {};
  if (scheduled.batch.sequences.empty()) {  // a wall clock woke up before the next arrival
    plan_.batch = {};
    return {};
  }
  if (!scheduled.swapped_out.empty() || !scheduled.swapped_in.empty())
    parts_.executor.swap_blocks(scheduled.swapped_out, scheduled.swapped_in);
  if (!scheduled.copies.empty()) parts_.executor.copy_blocks(scheduled.copies);
  if (!scheduled.received.empty()) receive(scheduled);
  if (parts_.drafter != nullptr) draft(scheduled);
  plan_.batch = std::move(scheduled.batch);
  parts_.plan(plan_);
  StepResult result = parts_.executor.run(plan_);
  parts_.clock.step_took(result.duration);
  report_.executor_time += result.duration;
  ++report_.num_steps;
  return result;
}

void ServingLoop::receive(const ScheduledStep& scheduled) {
  const Seconds begin = parts_.clock.now();
  const std::size_t block_bytes = parts_.executor.bytes_per_block();
  for (const ReceivedBlocks& received : scheduled.received) {
    const std::size_t first = block_bytes * static_cast<std::size_t>(received.first_block);
    parts_.executor.write_blocks(received.blocks,
                                 std::span(*received.kv).subspan(first, block_bytes * received.blocks.size()));
    report_.num_received_blocks += std::ssize(received.blocks);
  }
  report_.receiving += parts_.clock.now() - begin;
}

void ServingLoop::draft(ScheduledStep& scheduled) {
  Drafter& drafter = *parts_.drafter;
  if (!scheduled.swapped_out.empty() || !scheduled.swapped_in.empty())
    drafter.swap_blocks(scheduled.swapped_out, scheduled.swapped_in);
  if (!scheduled.copies.empty()) drafter.copy_blocks(scheduled.copies);
  Drafter::Proposal proposal = drafter.propose(scheduled.batch, scheduled.sequences);
  drafting_ = proposal.duration;
  parts_.clock.step_took(drafting_);
  report_.drafting += drafting_;
  scheduled.batch = parts_.scheduler.batch_with_drafts(std::move(proposal.trees));
}

void ServingLoop::choose_tokens() {
  const auto sampled = parts_.scheduler.sampled();
  verdicts_.resize(sampled.size());
  drafts_ = {};
  int row = 0;
  for (std::size_t index = 0; index < sampled.size(); ++index) {
    const DraftTree& draft = parts_.scheduler.draft_of(index);
    Verdict& verdict = verdicts_[index];  // of the step before: its memory is used again
    if (draft.empty()) {
      verdict.tokens.resize(1);
      verdict.tokens.front() = parts_.tokens.next_token(*sampled[index], row++);
      verdict.path.clear();
      continue;
    }
    verdict = parts_.tokens.judge(*sampled[index], draft, row);
    drafts_.add(draft, verdict);
    row += 1 + draft.num_tokens();
  }
  report_.drafts += drafts_;
}

void ServingLoop::hand_out_tokens(Seconds now) {
  const auto sampled = parts_.scheduler.sampled();
  tokens_before_.clear();
  if (callbacks_.on_tokens)
    for (const Sequence* sequence : sampled) tokens_before_.push_back(sequence->num_tokens());
  const std::vector<SlotMove> moves = parts_.scheduler.finish_step(verdicts_, now);
  if (!moves.empty()) parts_.executor.move_slots(moves);
  if (parts_.drafter != nullptr) tell_drafter(moves);
  if (!callbacks_.on_tokens) return;
  for (std::size_t index = 0; index < sampled.size(); ++index)
    callbacks_.on_tokens(*sampled[index], sampled[index]->num_tokens() - tokens_before_[index]);
}

void ServingLoop::tell_drafter(std::span<const SlotMove> moves) {
  if (!moves.empty()) parts_.drafter->move_slots(moves);
  std::vector<JudgedSequence> judged;
  int row = 0;
  for (const Sequence* sequence : parts_.scheduler.sampled()) {
    const DraftTree& draft = parts_.scheduler.draft_of(judged.size());
    judged.push_back({.sequence = sequence, .draft = &draft, .verdict = &verdicts_[judged.size()], .first_row = row});
    row += 1 + draft.num_tokens();
  }
  parts_.drafter->judged(judged);
}

void ServingLoop::record(const Sequence& sequence) {
  parts_.executor.forget(sequence.request.id);
  if (parts_.drafter != nullptr) parts_.drafter->forget(sequence.request.id);
  report_.add(sequence, parts_.records);
  report_.duration = sequence.token_times.back() - *first_arrival_;
  if (sequence.sample == 0 && source_ != nullptr) tokens_of_source_ -= sequence.num_prompt_tokens();
  if (callbacks_.on_finished) callbacks_.on_finished(sequence);
}

}  // namespace dculab
