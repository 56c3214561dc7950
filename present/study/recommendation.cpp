#include "present/study/recommendation.hpp"

#include <algorithm>
#include <map>

#include "config/unit_text.hpp"

namespace dculab::present {
namespace {

// The alternatives along one axis, the other held at the recommended value.
[[nodiscard]] Table why_table(const std::map<sim::Choice, study::AttentionCauses>& causes,
                              const study::EvaluatedChoices& choices, sim::Choice best, bool along_blocks) {
  Table table;
  table.title = along_blocks ? "Block sizes at " + study::heads_text(best.kv_heads)
                             : "KV heads at block size " + std::to_string(best.block_size);
  table.columns = {along_blocks ? "block" : "KV heads",
                   "step",
                   "against choice",
                   "attention",
                   "KV bytes",
                   "look-ups",
                   "KV waste",
                   "what differs most"};
  const study::AttentionCauses& reference = causes.at(best);
  for (const auto& [choice, cause] : causes) {
    if (!choices.contains(choice)) continue;
    const bool on_axis = along_blocks ? choice.kv_heads == best.kv_heads : choice.block_size == best.block_size;
    if (!on_axis) continue;
    const bool chosen = choice == best;
    table.rows.push_back({std::to_string(along_blocks ? choice.block_size : choice.kv_heads) + (chosen ? " *" : ""),
                          config::short_text(Seconds(cause.step)),
                          chosen                           ? ""
                          : choices.at(choice).figure == 0 ? "no room"
                                                           : signed_percent(cause.step / reference.step - 1, 2),
                          config::short_text(Seconds(cause.attention)), config::short_text(Bytes(cause.kv_bytes)),
                          config::short_text(Seconds(cause.lookups)), percent(cause.wasted, 2),
                          chosen ? "" : study::attention_difference(reference, cause)});
  }
  return table;
}

[[nodiscard]] std::string group_text(int kv_heads, int query_heads) {
  return study::heads_text(kv_heads) + " (group size " + std::to_string(query_heads / kv_heads) + ")";
}

[[nodiscard]] std::string block_text(const study::StepDecision& decision, const std::string& machine) {
  return "→ " + machine + ", " + study::heads_text(decision.choice.kv_heads) + ": block size " +
         std::to_string(decision.choice.block_size) + "; " +
         costs_text(decision.blocks.evaluated, decision.blocks.verdict);
}

[[nodiscard]] std::string heads_line(const study::StepDecision& decision, const study::HeadsQuestion& question,
                                     const std::string& machine) {
  const std::string kept = group_text(decision.choice.kv_heads, question.query_heads);
  if (question.accuracy)
    return "→ " + machine + ": " + kept + ", the most within " + percent(question.speed_tie, 2) +
           " of the fastest, of the model's own " + std::to_string(question.own) + " and those that lose at most " +
           percent(question.tolerance, 2) + " of " + question.accuracy->metric + ", as measured on " +
           question.accuracy->model;
  return "→ " + machine + ": no number of KV heads is recommended, because the accuracy of " + question.model +
         " with other than its own " + std::to_string(question.own) + " is not known";
}

[[nodiscard]] ReportedChoice reported_choice(sim::Choice choice, const study::EvaluatedChoices& choices) {
  return {choice, Seconds(1 / choices.at(choice).figure)};
}

[[nodiscard]] ReportedStepDecision reported_decision(const study::StepDecision& decision,
                                                     const study::EvaluatedChoices& choices,
                                                     const study::HeadsQuestion& question) {
  ReportedStepDecision reported{reported_choice(decision.choice, choices), reported_choice(decision.fastest, choices)};
  const auto own = std::ranges::find_if(decision.kv_heads.choices, [&](const sim::Choice& choice) {
    return choice.kv_heads == question.own && choices.at(choice).figure > 0;
  });
  if (own != decision.kv_heads.choices.end())
    reported.own = ReportedOwnHeads{reported_choice(*own, choices),
                                    choices.at(decision.choice).figure / choices.at(*own).figure - 1};
  reported.kv_heads_by = question.accuracy ? "accuracy" : "own";
  reported.block_sizes = reported_costs(decision.blocks.evaluated, decision.blocks.verdict);
  for (std::size_t index = 0; index < decision.kv_heads.choices.size(); ++index)
    if (decision.front[index])
      reported.kv_heads_front.push_back(reported_choice(decision.kv_heads.choices[index], choices));
  return reported;
}

}  // namespace

std::optional<ReportedStepDecision> add_recommendation(const study::StepStudy& study, Report& report) {
  const study::EvaluatedChoices& choices = study.choices;
  const study::HeadsQuestion& question = study.question;
  const std::string& machine = study.machine.name;
  std::vector<std::string>& notes = report.tables.back().notes;
  if (choices.size() < 2) {
    notes.push_back("Nothing to choose: the sweep has one number of KV heads and one block size.");
    return std::nullopt;
  }
  const auto& decision = study.decision;
  if (!decision) {
    notes.push_back("→ " + machine + ": no number of KV heads of the sweep loses at most " +
                    percent(question.tolerance, 2) + " of " + question.accuracy->metric);
    return std::nullopt;
  }
  if (decision->blocks.choices.size() > 1) {
    report.tables.push_back(why_table(study.causes, choices, decision->choice, true));
    report.tables.back().notes.push_back(block_text(*decision, machine));
  }
  if (decision->kv_heads.choices.size() > 1) {
    report.tables.push_back(why_table(study.causes, choices, decision->choice, false));
    report.tables.back().notes.push_back(heads_line(*decision, question, machine));
  }
  return reported_decision(*decision, choices, question);
}

}  // namespace dculab::present
