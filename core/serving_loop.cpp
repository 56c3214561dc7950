#include "core/serving_loop.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "core/cancellation.hpp"
#include "core/error.hpp"

namespace dculab {
namespace {

// In the order of ScheduledStep.
template <class Cache>
void move_blocks(Cache& cache, const ScheduledStep& step) {
  if (!step.swapped_out.empty()) cache.swap_blocks(step.swapped_out, {});
  if (!step.copies.empty()) cache.copy_blocks(step.copies);
  if (!step.swapped_in.empty()) cache.swap_blocks({}, step.swapped_in);
}

}  // namespace

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

bool ServingLoop::abort(SequenceId id) {
  if (std::erase_if(pending_, [id](const Request& request) { return request.id == id; }) > 0) return true;
  const std::unique_ptr<Sequence> taken = parts_.scheduler.abort(id);
  if (taken) forget(*taken);
  return taken != nullptr;
}

bool ServingLoop::step() {
  stop_if_cancelled();
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
  begin = execute(parts_.scheduler.schedule(), begin);
  choose_tokens();
  const Seconds end = parts_.clock.now();
  report_step(begin, end);
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
  next_ = source.next_to_serve();
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
  next_ = source_->next_to_serve();
}

void ServingLoop::queue_arrivals(Seconds now) {
  while (next_ && next_->arrival <= now) take_from_source();
  while (!pending_.empty() && pending_.front().arrival <= now) {
    parts_.scheduler.submit(std::move(pending_.front()));
    pending_.pop_front();
  }
}

// Returns when the part of the step began that ran last: only its tokens are still to be chosen.
Seconds ServingLoop::execute(ScheduledStep scheduled, Seconds begin) {
  drafting_ = {};
  const bool has_many = !scheduled.batch.sequences.empty(), has_few = !scheduled.few_heads.sequences.empty();
  plan_.batch = {};
  if (!has_many && !has_few) return begin;  // a wall clock woke up before the next arrival
  move_blocks(has_many ? parts_.executor : *parts_.few_heads.executor, scheduled);
  report_.swaps = parts_.scheduler.swaps();
  if (!scheduled.received.empty()) receive(scheduled);
  if (parts_.drafter != nullptr) draft(scheduled);
  if (has_many) run_batch(std::move(scheduled.batch), parts_.plan, parts_.executor);
  if (!has_few) return begin;
  if (has_many) {
    const Seconds end = parts_.clock.now();
    report_step(begin, end);
    begin = end;
  }
  run_batch(std::move(scheduled.few_heads), parts_.few_heads.plan, *parts_.few_heads.executor);
  return begin;
}

void ServingLoop::run_batch(Batch batch, const StepPlanner& plan, Executor& executor) {
  plan_.batch = std::move(batch);
  plan(plan_);
  result_ = executor.run(plan_);
  parts_.clock.step_took(result_.duration);
  report_.executor_time += result_.duration;
  ++report_.num_steps;
}

void ServingLoop::report_step(Seconds begin, Seconds end) const {
  if (callbacks_.on_step && !plan_.batch.sequences.empty())
    callbacks_.on_step({begin, end, plan_, result_, parts_.scheduler, drafting_, drafts_});
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
  move_blocks(drafter, scheduled);
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
  std::array<int, kHeadSets> rows{};
  for (std::size_t index = 0; index < sampled.size(); ++index) {
    const DraftTree& draft = parts_.scheduler.draft_of(index);
    int& row = rows[static_cast<std::size_t>(sampled[index]->head_set)];
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

void ServingLoop::forget(const Sequence& sequence) {
  (sequence.head_set == HeadSet::few ? *parts_.few_heads.executor : parts_.executor).forget(sequence.request.id);
  if (parts_.drafter != nullptr) parts_.drafter->forget(sequence.request.id);
}

void ServingLoop::record(const Sequence& sequence) {
  forget(sequence);
  report_.add(sequence, parts_.records);
  report_.duration = sequence.token_times.back() - *first_arrival_;
  if (callbacks_.on_finished) callbacks_.on_finished(sequence);
  if (sequence.sample != 0 || source_ == nullptr) return;
  tokens_of_source_ -= sequence.num_prompt_tokens();
  source_->finished(sequence.token_times.back());
  if (!next_) next_ = source_->next_to_serve();
}

}  // namespace dculab
