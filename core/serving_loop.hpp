// Serves requests that arrive over time: one loop for the real engine and for the simulator's virtual clock.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/draft_counts.hpp"
#include "core/executor.hpp"
#include "core/request.hpp"
#include "core/scheduler.hpp"
#include "core/step_plan.hpp"
#include "core/workload.hpp"

namespace dculab {

// Time since the loop's beginning. A wall clock lives with the engine; core has only the virtual one.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual Seconds now() const = 0;

  // A step of this duration has just been run. A wall clock knows already.
  virtual void step_took(Seconds duration) = 0;

  // There is nothing to do before `time`.
  virtual void wait_until(Seconds time) = 0;
};

// Stands still except for the steps' durations and jumps over idle times.
class VirtualClock final : public Clock {
 public:
  [[nodiscard]] Seconds now() const override { return now_; }
  void step_took(Seconds duration) override { now_ += duration; }
  void wait_until(Seconds time) override {
    if (time > now_) now_ = time;
  }

 private:
  Seconds now_;
};

// Chooses the next token of a sequence: the engine samples from a row of the logits that the executor just computed,
// the simulator makes one up. It must depend on nothing but the sequence's tokens, its sampling parameters and that
// row; then preemption cannot change what a user gets. Of two sets of heads each has logits of its own.
class TokenSource {
 public:
  virtual ~TokenSource() = default;
  virtual TokenId next_token(const Sequence& sequence, int logits_row) = 0;

  // Which drafted tokens follow, and the one after them. `first_row` of the logits is the last token's, those of the
  // draft's nodes follow.
  virtual Verdict judge(const Sequence&, const DraftTree&, int /*first_row*/) {
    throw std::logic_error("this source of tokens judges no drafts");
  }
};

// One step of the loop, when it has been done; of a model with two sets of heads each set's part of it, one after the
// other. The references are valid during the call.
struct ServedStep {
  Seconds begin;  // the clock's time when requests that had arrived were queued
  Seconds end;    // when its tokens were known
  const StepPlan& plan;
  const StepResult& result;
  const Scheduler& scheduler;  // its pool still holds the blocks of sequences that end with this step
  Seconds drafting{};          // within the step, before the model ran
  DraftCounts drafts{};        // of this step
};

struct ServingCallbacks {
  std::function<void(const Sequence&, int count)> on_tokens{};  // the last `count` of sequence.tokens are new
  std::function<void(const Sequence&)> on_finished{};           // after its last on_tokens; then the sequence is gone
  std::function<void(const ServedStep&)> on_step{};             // before the on_tokens of its tokens
};

// Whether the report lists every request: its memory then grows with them.
enum class RequestRecords : std::uint8_t { keep, drop };

// When a step is scheduled: when the one before it has ended, or, so that the device need not wait for it, when that
// one begins. Who arrives meanwhile then waits a step longer (vLLM's async_scheduling).
enum class Scheduling : std::uint8_t { between_steps, one_step_ahead };

struct RequestStats {
  SequenceId id = 0;
  int num_prompt_tokens = 0;
  int num_generated = 0;
  int num_cached_tokens = 0;  // of the prompt, found by prefix caching
  int num_preemptions = 0;
  FinishReason finish_reason = FinishReason::none;
  Seconds arrival;
  Seconds ttft;
  Seconds tpot;
  Seconds latency;  // arrival to last token
};

struct ServingReport {
  std::vector<RequestStats> requests;  // in order of finishing
  Seconds duration;                    // first arrival to last token
  Seconds executor_time;               // sum of the steps' durations
  std::int64_t num_steps = 0;
  std::int64_t num_prompt_tokens = 0;     // of finished requests, once for all samples of a request
  std::int64_t num_cached_tokens = 0;     // of these, found by prefix caching
  std::int64_t num_padding_tokens = 0;    // that prompts came with and that were skipped, beside them
  std::int64_t num_duplicate_tokens = 0;  // of prompts that others wrote
  std::int64_t num_generated_tokens = 0;  // of finished requests
  int num_preemptions = 0;
  SwapCounts swaps{};
  DraftCounts drafts{};
  Seconds drafting{};                    // within the steps; executor_time leaves it out
  std::int64_t num_received_blocks = 0;  // from other executors,
  Seconds receiving{};                   // and how long writing them took, by the clock

  // Counts a finished sequence; the duration is the caller's.
  void add(const Sequence& sequence, RequestRecords records);
};

// A model with one of two sets of KV heads.
struct HeadSetParts {
  StepPlanner plan;
  Executor* executor = nullptr;
};

// What the loop works with; all of it must outlive the loop.
struct ServingParts {
  StepPlanner plan;
  Scheduler& scheduler;
  Executor& executor;
  TokenSource& tokens;
  Clock& clock;
  RequestRecords records = RequestRecords::keep;
  Scheduling scheduling = Scheduling::between_steps;
  Drafter* drafter = nullptr;   // where the options have a speculative_config
  HeadSetParts few_heads = {};  // where they have groups_by_load; `plan` and `executor` above are of many heads
};

class ServingLoop {
 public:
  explicit ServingLoop(ServingParts parts, ServingCallbacks callbacks = {});

  // Takes a request in, to be queued when its arrival time has come; or says why it can never be served.
  [[nodiscard]] std::optional<std::string> submit(Request request);

  // Ends a submitted request before it has finished, and gives its blocks back: nobody is told any more of it, and the
  // report leaves it out. False where there is none of that id. Between steps, of requests that no source gave.
  bool abort(SequenceId id);

  // Runs one step, after waiting for the next arrival if no request is there. False when all requests are finished.
  bool step();

  // Steps until all requests are finished.
  void run();

  // The same with the source's requests, which are taken from it as they arrive: only those that wait or run are in
  // memory. Throws InputError for one that can never be served.
  void run(RequestSource& source);

  [[nodiscard]] const ServingReport& report() const { return report_; }

 private:
  void take_from_source();
  void queue_arrivals(Seconds now);
  [[nodiscard]] Seconds execute(ScheduledStep scheduled, Seconds begin);
  void run_batch(Batch batch, const StepPlanner& plan, Executor& executor);
  void report_step(Seconds begin, Seconds end) const;
  void receive(const ScheduledStep& scheduled);
  void draft(ScheduledStep& scheduled);
  void choose_tokens();
  void hand_out_tokens(Seconds now);
  void tell_drafter(std::span<const SlotMove> moves);
  void forget(const Sequence& sequence);
  void record(const Sequence& sequence);

  ServingParts parts_;
  ServingCallbacks callbacks_;
  std::deque<Request> pending_;  // in order of arrival
  RequestSource* source_ = nullptr;
  std::optional<Request> next_;        // of the source
  std::int64_t tokens_of_source_ = 0;  // prompts of requests that it gave and that wait or run
  std::optional<Seconds> first_arrival_;
  StepPlan plan_;        // re-used: its ops keep their storage
  StepResult result_;    // of it
  Seconds step_before_;  // when the step before began
  std::vector<Verdict> verdicts_;
  std::vector<int> tokens_before_;  // of each sampled sequence
  Seconds drafting_;                // of this step
  DraftCounts drafts_;
  ServingReport report_;
};

}  // namespace dculab
