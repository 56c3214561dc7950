#include "cli/study/speculation_study.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "cli/output/leaning_report.hpp"
#include "cli/output/speculation_report.hpp"
#include "core/error.hpp"
#include "sim/study/recipe.hpp"
#include "study/decide/speculation_advice.hpp"
#include "study/scenario/request_workload.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/server.hpp"
#include "study/scenario/speculation.hpp"
#include "study/scenario/stacks.hpp"

namespace dculab::cli {
namespace {

constexpr const char* kTokens = "engine.speculative_config.num_speculative_tokens";
constexpr const char* kTree = "engine.speculative_config.speculative_token_tree";
constexpr const char* kBatch = "workload.batch";

// A point of the sweep with what its answer follows from.
struct DraftPoint {
  std::vector<config::Override> choices;
  study::DraftQuestion question;
  DraftShape shape;
  int batch = 1;
};

// Of a step its own; of requests that of a token in the middle of an answer.
[[nodiscard]] int context_of(const config::Scenario& scenario) {
  if (scenario.workload.kind == config::WorkloadKind::step) return scenario.workload.context_tokens;
  const RequestWorkload& served = scenario.workload.served;
  return static_cast<int>(served.prompt.center + (served.output.center + 1) / 2);
}

[[nodiscard]] int batch_of(const config::Scenario& scenario, const EngineOptions& options) {
  if (scenario.workload.kind == config::WorkloadKind::step) return scenario.workload.batch;
  return std::min(options.max_num_seqs, static_cast<int>(scenario.workload.served.requests));
}

[[nodiscard]] study::DraftQuestion question_of(const config::Scenario& scenario, const std::string& name) {
  const sim::Machine machine = study::resolve_machine(scenario, name);
  const ModelShape model = study::resolve_model(scenario);
  const ModelShape part = study::resolve_part(scenario, model, machine);
  const EngineOptions options = study::resolve_options(scenario, part, machine);
  const int context = context_of(scenario), longest = context + options.speculative_config.shape.num_tokens();
  if (longest > part.max_position_embeddings)
    throw InputError(scenario.file, "workload: " + std::to_string(longest) +
                                        " tokens, drafts among them, are more than " + model.name + " takes");
  auto question = study::draft_question(scenario, machine, model, part, options, context);
  if (!question)
    throw InputError(scenario.file,
                     "engine.speculative_config: a point of this study drafts nothing; every point is "
                     "held against a step without drafts, so leave 0 out");
  return *std::move(question);
}

[[nodiscard]] DraftPoint draft_point(const config::SweepPoint& point, const std::string& machine) {
  DraftPoint asked{.choices = point.choices, .question = question_of(point.scenario, machine), .shape = {}};
  asked.shape = asked.question.options.speculative_config.shape;
  asked.batch = batch_of(point.scenario, asked.question.options);
  return asked;
}

[[nodiscard]] std::vector<config::Override> others_of(const DraftPoint& asked) {
  std::vector<config::Override> others = asked.choices;
  std::erase_if(others, [](const auto& choice) {
    return choice.first == kTokens || choice.first == kTree || choice.first == kBatch;
  });
  return others;
}

template <class T, class V>
[[nodiscard]] bool contains(const std::vector<T>& all, const V& value) {
  return std::ranges::find(all, value) != all.end();
}

// Of the points of one group, whose answers are `outcomes`.
[[nodiscard]] DraftAdvice advise(const std::vector<const DraftPoint*>& asked,
                                 const std::vector<study::DraftOutcome>& outcomes) {
  DraftAdvice advice{.others = others_of(*asked.front()), .batches = {}, .shapes = {}};
  std::vector<int> batches;
  std::vector<DraftShape> shapes;
  for (std::size_t index = 0; index < asked.size(); ++index) {
    if (!contains(batches, asked[index]->batch)) batches.push_back(asked[index]->batch);
    if (contains(shapes, asked[index]->shape)) continue;
    shapes.push_back(asked[index]->shape);
    advice.shapes.push_back({asked[index]->shape, study::break_even(asked[index]->question, asked[index]->shape)});
  }
  for (const int batch : batches) {
    std::vector<study::DraftOutcome> of_batch;
    for (const study::DraftOutcome& outcome : outcomes)
      if (outcome.batch == batch) of_batch.push_back(outcome);
    const std::optional<std::size_t> best = study::best_draft(of_batch);
    advice.batches.push_back({batch, best ? std::optional(of_batch[*best]) : std::nullopt});
  }
  return advice;
}

[[nodiscard]] std::vector<DraftAdvice> advise_all(const std::vector<DraftPoint>& asked,
                                                  const std::vector<StudiedDraft>& studied) {
  std::vector<std::vector<config::Override>> groups;
  std::vector<DraftAdvice> advice;
  for (const DraftPoint& each : asked)
    if (!contains(groups, others_of(each))) groups.push_back(others_of(each));
  for (const std::vector<config::Override>& group : groups) {
    std::vector<const DraftPoint*> of_group;
    std::vector<study::DraftOutcome> outcomes;
    for (std::size_t index = 0; index < asked.size(); ++index) {
      if (others_of(asked[index]) != group) continue;
      of_group.push_back(&asked[index]);
      outcomes.push_back(studied[index].outcome);
    }
    advice.push_back(advise(of_group, outcomes));
  }
  return advice;
}

[[nodiscard]] std::string drafter_text(const study::DraftQuestion& question) {
  switch (question.options.speculative_config.method) {
    case SpeculativeMethod::draft_model:
      return question.speculation.draft->name;
    case SpeculativeMethod::mtp:
      return "its own layer for further tokens";
    case SpeculativeMethod::medusa:
      return "Medusa heads";
    default:
      return "look-up in the text before";
  }
}

[[nodiscard]] std::string title_of(const study::DraftQuestion& question) {
  const int devices = question.part.tensor_parallel_size;
  return question.model.name + " on " + (devices > 1 ? std::to_string(devices) + " x " : "") + question.machine.name +
         ", drafted by " + drafter_text(question) + ", context " + std::to_string(question.context);
}

void study_sweep(const config::Scenario& scenario, const std::string& name, Report& report) {
  std::vector<DraftPoint> asked;
  std::vector<StudiedDraft> studied;
  for (const config::SweepPoint& point : config::sweep_points(scenario)) {
    const DraftPoint& each = asked.emplace_back(draft_point(point, name));
    studied.push_back({each.choices, study::judge(each.question, each.shape, each.batch)});
  }
  const std::vector<DraftAdvice> advice = advise_all(asked, studied);
  const sim::Machine& machine = asked.front().question.machine;
  Json json{{"machine", machine.name}, {"points", Json::array()}, {"advice", Json::array()}};
  for (const StudiedDraft& each : studied) {
    Json point{{"choices", Json::object()}};
    for (const auto& [key, value] : each.choices) point["choices"][key] = value;
    point.update(to_json(each.outcome));
    json["points"].push_back(std::move(point));
  }
  for (const DraftAdvice& each : advice) json["advice"].push_back(to_json(each));
  report.tables.push_back(drafts_table(title_of(asked.front().question), studied));
  report.tables.push_back(advice_table(advice));
  report.tables.push_back(break_even_table(advice));
  report.json["machines"].push_back(std::move(json));
}

// TPOT of the requests without drafts over that with them.
[[nodiscard]] std::optional<double> simulated_speed_up(const config::Scenario& scenario, const std::string& machine) {
  if (scenario.workload.kind != config::WorkloadKind::serving) return std::nullopt;
  sim::SimulatedServer server = study::resolve_server(scenario, study::resolve_machine(scenario, machine));
  const RequestWorkload workload = study::resolve_requests(scenario, server.model);
  const Seconds with = sim::simulate(server, workload).metrics.tpot().mean();
  server.options.speculative_config = {};
  server.speculation.reset();
  return sim::simulate(server, workload).metrics.tpot().mean() / with;
}

[[nodiscard]] ReportedDraft reported_of(const config::Scenario& scenario, const config::Variant& variant,
                                        const std::string& machine) {
  const config::Scenario changed = config::with_changes(scenario, variant);
  const study::DraftQuestion question = question_of(changed, machine);
  const DraftShape& shape = question.options.speculative_config.shape;
  ReportedDraft draft{.variant = variant.name,
                      .outcome = study::judge(question, shape, batch_of(changed, question.options)),
                      .simulated = simulated_speed_up(changed, machine),
                      .reported = {}};
  const int depth = shape.depth();
  draft.rate = sim::rate_of_chain(std::min(draft.outcome.tokens, depth + 1.0), depth);
  draft.cost = draft.outcome.times.drafting / draft.outcome.times.plain / depth;
  draft.closed_form = sim::lecture_speed_up(draft.rate, depth, draft.cost);
  for (const config::ReportedFigure& figure : scenario.compare->reported)
    if (figure.variant == variant.name && figure.metric == "speed_up") draft.reported = figure.value;
  return draft;
}

void study_reported(const config::Scenario& scenario, const std::string& name, Report& report) {
  const config::Compare& compare = *scenario.compare;
  std::vector<ReportedDraft> drafts;
  for (const config::Variant& variant : compare.variants) drafts.push_back(reported_of(scenario, variant, name));
  const sim::Machine machine = study::resolve_machine(scenario, name);
  Table table = reported_drafts_table("Against " + compare.baseline + ", on " + machine.name, drafts);
  for (const config::Variant& variant : compare.variants)
    if (!variant.note.empty()) table.notes.push_back(variant.name + ": " + variant.note);
  table.notes.push_back("reported: " + compare.source);
  Json json{{"machine", machine.name}, {"reported", Json::array()}};
  for (const ReportedDraft& draft : drafts) json["reported"].push_back(to_json(draft));
  report.tables.push_back(std::move(table));
  report.json["machines"].push_back(std::move(json));
}

}  // namespace

bool is_speculation_study(const config::Scenario& scenario) {
  const bool serves = scenario.workload.kind == config::WorkloadKind::serving;
  return study::drafts(scenario) && !scenario.accuracy && scenario.choose.empty() && (scenario.compare || !serves);
}

void study_speculation(const config::Scenario& scenario, const std::vector<std::string>& machines, Report& report) {
  if (scenario.workload.kind == config::WorkloadKind::step && scenario.workload.phase == Phase::prefill)
    throw InputError(scenario.file, "workload.phase: drafts follow a token that was decoded; set decode");
  if (scenario.compare)
    for (const std::string& assumption : scenario.compare->assumptions)
      report.heading.push_back("assumed: " + assumption);
  report.json["machines"] = Json::array();
  for (const std::string& name : machines)
    scenario.compare ? study_reported(scenario, name, report) : study_sweep(scenario, name, report);
}

}  // namespace dculab::cli
