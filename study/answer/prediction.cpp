#include "study/answer/prediction.hpp"

#include <utility>

#include "config/unit_text.hpp"
#include "model/model_config.hpp"
#include "model/plan_step.hpp"
#include "study/scenario/format_warnings.hpp"
#include "study/scenario/refuse.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/served.hpp"
#include "study/scenario/stacks.hpp"

namespace dculab::study {
namespace {

// What the step is worth that verifies drafts, beside one without.
void judge_drafts(const config::Scenario& scenario, Prediction& prediction) {
  const auto question = draft_question(scenario, prediction.machine, prediction.whole, prediction.model,
                                       prediction.options, scenario.workload.context_tokens);
  if (!question || scenario.workload.phase != Phase::decode) return;
  prediction.drafts = judge(*question, prediction.options.speculative_config.shape, scenario.workload.batch);
  prediction.draft_memory = draft_memory(*question);
}

// What does not fit in the machine's memory; empty where all does.
[[nodiscard]] std::string misfit(const Prediction& prediction) {
  const sim::Capacity& room = prediction.capacity;
  if (static_cast<std::int64_t>(prediction.plan.batch.sequences.size()) <= room.max_sequences) return {};
  const std::string anyway = "; the time is what it would take if it did";
  if (room.num_blocks > 0) return "this batch does not fit in the machine's memory" + anyway;
  return prediction.whole.name + " does not fit: " + config::short_text(room.weights) +
         " of weights leave no room for a KV block in the memory of " + prediction.machine.name + anyway;
}

// All that makes the figures less than they seem.
[[nodiscard]] std::vector<std::string> warnings_of(const Prediction& prediction) {
  std::vector<std::string> warnings = prediction.whole.notes;
  if (prediction.options.speculative_config.method == SpeculativeMethod::mtp)
    std::erase_if(warnings, [](const std::string& note) { return note.starts_with(kUncountedPredictors); });
  for (std::string& what : format_warnings(prediction.machine, prediction.options)) warnings.push_back(std::move(what));
  for (std::string& what : unserved(prediction.machine, prediction.model, prediction.options))
    warnings.push_back(std::move(what));
  for (std::string& what : idle_reached(prediction.machine)) warnings.push_back(std::move(what));
  if (std::string what = misfit(prediction); !what.empty()) warnings.push_back(std::move(what));
  return warnings;
}

}  // namespace

Prediction predict(const config::Scenario& scenario, InputSensitivities input_sensitivities) {
  refuse_unsupported(scenario);
  return predict(scenario, resolve_machine(scenario, scenario.machines.front()), input_sensitivities);
}

Prediction predict(const config::Scenario& scenario, sim::Machine machine, InputSensitivities input_sensitivities) {
  refuse_unsupported(scenario);
  Prediction prediction;
  prediction.machine = std::move(machine);
  prediction.whole = resolve_model(scenario);
  prediction.model = resolve_part(scenario, prediction.whole, prediction.machine);
  prediction.options = resolve_options(scenario, prediction.model, prediction.machine);
  prediction.plan = plan_step(prediction.model, prediction.options,
                              resolve_batch(scenario.workload, prediction.model, prediction.options));
  judge_drafts(scenario, prediction);
  sim::price_step(prediction.machine, prediction.plan, 0, prediction.price, prediction.draft_memory.weights);
  prediction.cost = sim::step_cost(prediction.machine, prediction.model, prediction.plan, prediction.price);
  prediction.confidence = sim::confidence(prediction.machine, prediction.model, prediction.options, prediction.plan,
                                          prediction.price.seconds);
  prediction.capacity = sim::capacity(prediction.machine, prediction.model, prediction.options,
                                      scenario.workload.context_tokens, prediction.draft_memory);
  prediction.shares_experts = scenario.deployment.shares_experts();
  prediction.rebalancing = sim::rebalancing_factor(scenario.deployment.of(ReplicaRole::both), prediction.machine,
                                                   prediction.model, prediction.options);
  if (prediction.shares_experts)
    prediction.micro_batches =
        sim::two_micro_batches(prediction.machine, prediction.model, prediction.options, prediction.plan.batch);
  if (input_sensitivities == InputSensitivities::found)
    prediction.input_sensitivities =
        sim::input_sensitivities(prediction.machine, [&prediction](const sim::Machine& candidate) {
          return std::vector<Seconds>{sim::price_step(candidate, prediction.plan).seconds};
        });
  prediction.warnings = warnings_of(prediction);
  return prediction;
}

}  // namespace dculab::study
