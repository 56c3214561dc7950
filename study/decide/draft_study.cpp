#include "study/decide/draft_study.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/error.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/served.hpp"
#include "study/scenario/speculation.hpp"

namespace dculab::study {
namespace {

// Of a step its own; of requests that of a token in the middle of an answer.
[[nodiscard]] int context_of(const config::Scenario& scenario) {
  if (scenario.workload.kind == config::WorkloadKind::step) return scenario.workload.context_tokens;
  const RequestWorkload& served = scenario.workload.served;
  return static_cast<int>(served.prompt.center + (served.output.center + 1) / 2);
}

[[nodiscard]] int batch_of(const config::Scenario& scenario, const EngineOptions& options) {
  if (scenario.workload.kind == config::WorkloadKind::step) return scenario.workload.batch;
  const int requests = scenario.workload.served.requests;
  return requests == config::kAllRequests ? options.max_num_seqs : std::min(options.max_num_seqs, requests);
}

// Choices that are neither batch nor draft.
[[nodiscard]] std::vector<config::Override> others_of(const DraftPoint& point) {
  std::vector<config::Override> others = point.choices;
  std::erase_if(others, [](const config::Override& choice) {
    return choice.first == "workload.batch" || choice.first == "engine.speculative_config.num_speculative_tokens" ||
           choice.first == "engine.speculative_config.speculative_token_tree";
  });
  return others;
}

template <class T>
[[nodiscard]] bool has(const std::vector<T>& all, const T& value) {
  return std::ranges::find(all, value) != all.end();
}

// Of the points of one group, whose answers are `outcomes`.
[[nodiscard]] DraftAdvice advise_group(const std::vector<const DraftPoint*>& points,
                                       const std::vector<DraftOutcome>& outcomes) {
  DraftAdvice advice{.others = others_of(*points.front()), .batches = {}, .shapes = {}};
  std::vector<int> batches;
  std::vector<DraftShape> shapes;
  for (const DraftPoint* point : points) {
    if (!has(batches, point->batch)) batches.push_back(point->batch);
    if (has(shapes, point->shape())) continue;
    shapes.push_back(point->shape());
    advice.shapes.push_back({point->shape(), break_even(point->question, point->shape())});
  }
  for (const int batch : batches) {
    std::vector<DraftOutcome> of_batch;
    for (const DraftOutcome& outcome : outcomes)
      if (outcome.batch == batch) of_batch.push_back(outcome);
    const std::optional<std::size_t> best = best_draft(of_batch);
    advice.batches.push_back({batch, best ? std::optional(of_batch[*best]) : std::nullopt});
  }
  return advice;
}

}  // namespace

bool is_draft_study(const config::Scenario& scenario) {
  const bool serves = scenario.workload.kind == config::WorkloadKind::serving;
  return drafts(scenario) && !scenario.accuracy && scenario.choose.empty() && (scenario.compare || !serves);
}

DraftPoint draft_point(const config::SweepPoint& point, const sim::Machine& machine) {
  const config::Scenario& scenario = point.scenario;
  const ModelShape model = resolve_model(scenario);
  const ModelShape part = resolve_part(scenario, model, machine);
  const EngineOptions options = resolve_options(scenario, part, machine);
  const int context = context_of(scenario), longest = context + options.speculative_config.shape.num_tokens();
  if (longest > part.max_position_embeddings)
    throw InputError(scenario.file, "workload: " + std::to_string(longest) +
                                        " tokens, drafts among them, are more than " + model.name + " takes");
  auto question = draft_question(scenario, machine, model, part, options, context);
  if (!question)
    throw InputError(scenario.file,
                     "engine.speculative_config: a point of this study drafts nothing; every point is "
                     "held against a step without drafts, so leave 0 out");
  return {.choices = point.choices, .question = *std::move(question), .batch = batch_of(scenario, options)};
}

std::vector<DraftAdvice> advise(const std::vector<DraftPoint>& points, const std::vector<DraftOutcome>& outcomes) {
  std::vector<std::vector<config::Override>> groups;
  for (const DraftPoint& point : points)
    if (const auto others = others_of(point); !has(groups, others)) groups.push_back(others);
  std::vector<DraftAdvice> advice;
  for (const std::vector<config::Override>& group : groups) {
    std::vector<const DraftPoint*> of_group;
    std::vector<DraftOutcome> outcomes_of_group;
    for (std::size_t index = 0; index < points.size(); ++index) {
      if (others_of(points[index]) != group) continue;
      of_group.push_back(&points[index]);
      outcomes_of_group.push_back(outcomes[index]);
    }
    advice.push_back(advise_group(of_group, outcomes_of_group));
  }
  return advice;
}

void refuse_drafted_prefill(const config::Scenario& scenario) {
  if (scenario.workload.kind == config::WorkloadKind::step && scenario.workload.phase == Phase::prefill)
    throw InputError(scenario.file, "workload.phase: drafts follow a token that was decoded; set decode");
}

DraftStudy study_drafts(const config::Scenario& scenario, const std::string& machine) {
  refuse_drafted_prefill(scenario);
  DraftStudy study;
  for (const config::SweepPoint& each : config::sweep_points(scenario)) {
    const DraftPoint& point = study.points.emplace_back(draft_point(each, resolve_machine(each.scenario, machine)));
    const DraftQuestion& question = point.question;
    study.outcomes.push_back(judge(question, point.shape(), point.batch));
    std::ranges::move(refused_kv(question.machine, question.part, question.options), std::back_inserter(study.refused));
  }
  study.advice = advise(study.points, study.outcomes);
  return study;
}

}  // namespace dculab::study
