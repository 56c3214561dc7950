// How long steps take whose sequences somebody else schedules: one model on one machine, any batch.
#pragma once

#include <span>

#include "config/scenario_file.hpp"
#include "core/step_plan.hpp"
#include "sim/cost/step_price.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::study {

// A sequence's part of a step.
struct SequenceTokens {
  int new_tokens = 1;     // that the step computes
  int cached_tokens = 0;  // in the KV cache before it
};

class BatchPricer {
 public:
  // Of the scenario's model, machine, stack, options and deployment; its workload says nothing. Throws InputError.
  explicit BatchPricer(const config::Scenario& scenario);

  // As `predict` prices a step: of uniform sequences the same number. One new token after others is a decode, all else
  // a prefill, or a part of one. Whether the KV cache has room is the scheduler's business. Zero for no sequences.
  // Throws InputError for sequences longer than the model's.
  [[nodiscard]] Seconds time(std::span<const SequenceTokens> sequences);

  // Of a batch as the engine made it, as cold as it says; lengths are enough.
  [[nodiscard]] Seconds time_of(Batch batch);

  [[nodiscard]] const sim::Machine& machine() const { return machine_; }

 private:
  sim::Machine machine_;
  ModelShape model_;  // what each device has of it
  EngineOptions options_;
  StepPlan plan_;
  sim::StepPrice price_;
};

}  // namespace dculab::study
