#include "study/decide/speculation_advice.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "model/plan_step.hpp"
#include "sim/calibration/confidence.hpp"
#include "sim/cost/step_price.hpp"
#include "sim/study/measured_run.hpp"
#include "sim/study/serving_setting.hpp"
#include "study/scenario/speculation.hpp"

namespace dculab::study {
namespace {

[[nodiscard]] EngineOptions with_shape(EngineOptions options, const DraftShape& shape) {
  options.speculative_config.shape = shape;
  return options;
}

// The steps of a round, planned.
struct Round {
  StepPlan plain, verify;
  std::vector<sim::DraftTask> tasks;
  std::vector<StepPlan> drafting;
};

[[nodiscard]] Round plan_round(const DraftQuestion& question, const sim::DraftWork& work, const DraftShape& shape,
                               int batch) {
  const Batch decodes = uniform_batch(Phase::decode, batch, question.context);
  Round round{.plain = plan_step(question.part, question.options, decodes),
              .verify = plan_step(question.part, question.options, sim::with_drafts(decodes, shape)),
              .tasks = sim::uniform_tasks(shape, batch, question.context),
              .drafting = {}};
  round.drafting = work.plan(round.tasks);
  return round;
}

[[nodiscard]] DraftedTimes price_round(const sim::Machine& machine, const sim::DraftWork& work, const Round& round) {
  sim::StepPrice price;
  DraftedTimes times{.plain = {}, .verify = {}, .drafting = work.price(machine, round.drafting, round.tasks).seconds};
  sim::price_step(machine, round.plain, price);
  times.plain = price.seconds;
  sim::price_step(machine, round.verify, 0, price, work.memory().weights);
  times.verify = price.seconds;
  return times;
}

[[nodiscard]] double speed_up_of(double tokens, const DraftedTimes& times) {
  return tokens * times.plain / (times.verify + times.drafting);
}

// At 90 %, on a machine that was not calibrated by what each prior does to the ratio. A calibrated one's steps are off
// by its factor, for the most part alike.
[[nodiscard]] double factor_of_ratio(const DraftQuestion& question, const Round& round, const DraftedTimes& times) {
  sim::MeasuredRun before, after;
  before.steps.push_back({round.plain, 1, {}});
  after.steps.push_back({round.verify, 1, {}});
  for (const StepPlan& step : round.drafting) after.steps.push_back({step, 1, {}});
  if (const auto factor = sim::ratio_factor({question.machine, before}, {question.machine, after})) return *factor;
  const std::array features{sim::step_features(question.part, question.options, round.plain.batch),
                            sim::step_features(question.part, question.options, round.verify.batch)};
  return sim::spread(question.machine, features, [&times](const sim::Machine&) { return times.verify; }).factor;
}

// Sequences that fit with the drafter.
[[nodiscard]] std::int64_t room(const DraftQuestion& question, const sim::DraftWork& work,
                                const EngineOptions& options) {
  const int longest = question.context + options.speculative_config.shape.num_tokens();
  return sim::capacity(question.machine, question.part, options, longest, work.memory()).max_sequences;
}

}  // namespace

std::optional<DraftQuestion> draft_question(const config::Scenario& scenario, const sim::Machine& machine,
                                            const ModelShape& model, const ModelShape& part,
                                            const EngineOptions& options, int context) {
  const std::optional<sim::Speculation> speculation = resolve_speculation(scenario);
  if (!speculation || !options.speculative_config.enabled()) return std::nullopt;
  require_drafts(scenario, speculation, model, options, machine);
  return DraftQuestion{.machine = machine,
                       .model = model,
                       .part = part,
                       .options = options,
                       .devices = scenario.deployment.of(ReplicaRole::both),
                       .speculation = *speculation,
                       .context = context};
}

DraftedTimes priced_times(const DraftQuestion& question, const DraftShape& shape, int batch) {
  const EngineOptions options = with_shape(question.options, shape);
  const sim::DraftWork work(question.machine, question.model, options, question.devices, question.speculation);
  return price_round(question.machine, work, plan_round(question, work, shape, batch));
}

DraftOutcome judge(const DraftQuestion& question, const DraftShape& shape, int batch, const DraftedTimes& measured) {
  const EngineOptions options = with_shape(question.options, shape);
  const sim::DraftWork work(question.machine, question.model, options, question.devices, question.speculation);
  DraftOutcome outcome{.shape = shape,
                       .batch = batch,
                       .tokens = sim::expected_tokens(question.speculation.acceptance, shape),
                       .times = measured};
  outcome.speed_up = outcome.low = outcome.high = speed_up_of(outcome.tokens, measured);
  outcome.fits = room(question, work, options) >= batch;
  return outcome;
}

DraftOutcome judge(const DraftQuestion& question, const DraftShape& shape, int batch) {
  const EngineOptions options = with_shape(question.options, shape);
  const sim::DraftWork work(question.machine, question.model, options, question.devices, question.speculation);
  const Round round = plan_round(question, work, shape, batch);
  DraftOutcome outcome = judge(question, shape, batch, price_round(question.machine, work, round));
  const double factor = factor_of_ratio(question, round, outcome.times);
  outcome.low = outcome.speed_up / factor;
  outcome.high = outcome.speed_up * factor;
  return outcome;
}

sim::DraftMemory draft_memory(const DraftQuestion& question) {
  return sim::DraftWork(question.machine, question.model, question.options, question.devices, question.speculation)
      .memory();
}

BreakEven break_even(const DraftQuestion& question, const DraftShape& shape) {
  const EngineOptions options = with_shape(question.options, shape);
  const sim::DraftWork work(question.machine, question.model, options, question.devices, question.speculation);
  const int most = static_cast<int>(std::min<std::int64_t>(room(question, work, options), kLargestBreakEven));
  const double tokens = sim::expected_tokens(question.speculation.acceptance, shape);
  const auto pays = [&](int batch) {
    return speed_up_of(tokens, price_round(question.machine, work, plan_round(question, work, shape, batch))) > 1;
  };
  if (most < 1 || !pays(1)) return {};
  const std::optional<int> above = sim::nearest_flips(1, 1, most, pays).above;
  return {.batch = above ? *above - 1 : most, .is_all = !above};
}

std::optional<std::size_t> best_draft(std::span<const DraftOutcome> outcomes) {
  double largest = 1;
  for (const DraftOutcome& outcome : outcomes)
    if (outcome.fits) largest = std::max(largest, outcome.speed_up);
  std::optional<std::size_t> best;
  for (std::size_t index = 0; index < outcomes.size(); ++index) {
    const DraftOutcome& outcome = outcomes[index];
    if (!outcome.fits || outcome.speed_up <= 1 || outcome.speed_up < largest * (1 - kAlikeSpeedUp)) continue;
    if (!best || outcome.shape.num_tokens() < outcomes[*best].shape.num_tokens()) best = index;
  }
  return best;
}

DraftCandidates judge_candidates(const DraftQuestion& question, int batch) {
  constexpr int kMostDrafted = 8;
  const DraftShape& own = question.options.speculative_config.shape;
  DraftCandidates candidates;
  for (int tokens = 1; tokens <= kMostDrafted; ++tokens)
    candidates.outcomes.push_back(judge(question, chain_shape(tokens), batch));
  if (!own.is_chain()) candidates.outcomes.push_back(judge(question, own, batch));
  candidates.break_even = break_even(question, own);
  return candidates;
}

}  // namespace dculab::study
