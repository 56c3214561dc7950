// What `predict` answers: one step on one machine, op by op, and how far to trust it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/scenario_file.hpp"
#include "core/step_plan.hpp"
#include "sim/calibration/confidence.hpp"
#include "sim/calibration/input_sensitivity.hpp"
#include "sim/cost/step_price.hpp"
#include "sim/cost/token_price.hpp"
#include "sim/hardware/machine.hpp"
#include "sim/memory/capacity.hpp"
#include "sim/study/measured_run.hpp"
#include "study/decide/speculation_advice.hpp"

namespace dculab::study {

// A step, its price and how far to trust it.
struct Prediction {
  ModelShape whole;  // the model
  ModelShape model;  // what each device has of it
  EngineOptions options;
  sim::Machine machine;
  StepPlan plan;
  sim::StepPrice price;
  sim::StepCost cost;  // of the step alone, where it verifies drafts
  sim::Confidence confidence;
  sim::Capacity capacity;
  std::vector<sim::InputSensitivity> input_sensitivities;
  bool shares_experts = false;                          // over several devices
  double rebalancing = 1;                               // sim::rebalancing_factor, which no step has
  std::optional<sim::TwoMicroBatches> micro_batches{};  // then, where the step has tokens for two
  std::optional<study::DraftOutcome> drafts{};          // where the step verifies any
  sim::DraftMemory draft_memory{};
  std::vector<std::string> warnings{};  // what makes the figures less than they seem
};

// Input sensitivities take tens of times as long as the step alone.
enum class InputSensitivities : std::uint8_t { found, left_out };

// Of the scenario's step on its first machine. Throws InputError for what the price of a step does not answer, and for
// what the machine's stack does not serve.
[[nodiscard]] Prediction predict(const config::Scenario& scenario,
                                 InputSensitivities input_sensitivities = InputSensitivities::found);
// The same on `machine`, which resolve_machine made of the scenario's first.
[[nodiscard]] Prediction predict(const config::Scenario& scenario, sim::Machine machine,
                                 InputSensitivities input_sensitivities);

}  // namespace dculab::study
