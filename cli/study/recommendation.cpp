#include "cli/study/recommendation.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "cli/output/verdict_text.hpp"
#include "config/unit_text.hpp"
#include "sim/calibration/confidence.hpp"
#include "sim/memory/capacity.hpp"
#include "study/decide/attention_difference.hpp"
#include "study/scenario/resolve.hpp"

namespace dculab::cli {
namespace {

[[nodiscard]] std::map<sim::Choice, study::AttentionCauses> causes_by_choice(const std::vector<PricedPoint>& points) {
  std::map<sim::Choice, int> counts;
  for (const PricedPoint& priced : points) ++counts[priced.point->choice];
  std::map<sim::Choice, study::AttentionCauses> result;
  for (const PricedPoint& priced : points)
    study::add_to(result[priced.point->choice], priced.plan, priced.price, 1.0 / counts[priced.point->choice]);
  return result;
}

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
    const bool slower = cause.step >= reference.step;
    table.rows.push_back(
        {std::to_string(along_blocks ? choice.block_size : choice.kv_heads) + (chosen ? " *" : ""),
         Cell(config::short_text(Seconds(cause.step)), cause.step),
         chosen ? Cell("", 0)
         : choices.at(choice).figure == 0
             ? Cell("no room", 0)
             : Cell(signed_percent(cause.step / reference.step - 1, 2), cause.step / reference.step - 1),
         Cell(config::short_text(Seconds(cause.attention)), cause.attention),
         Cell(config::short_text(Bytes(cause.kv_bytes)), cause.kv_bytes),
         Cell(config::short_text(Seconds(cause.lookups)), cause.lookups), Cell(percent(cause.wasted, 2), cause.wasted),
         chosen ? ""
                : (slower ? "more " + study::largest_cause(reference, cause)
                          : "less " + study::largest_cause(cause, reference))});
  }
  return table;
}

// Steps of all points as choices, on `machine` where `base` is what they were made for.
[[nodiscard]] std::vector<study::PricedChoice> priced_choices(const std::vector<PricedPoint>& points,
                                                              const sim::Machine& base) {
  std::vector<study::PricedChoice> prices;
  for (const PricedPoint& priced : points) {
    const StudyPoint& point = *priced.point;
    const auto price = [&](const sim::Machine& machine) {
      return sim::price_step(machine_of(point, machine, base), priced.plan).seconds;
    };
    const int context = point.batch.sequences.front().context_tokens();
    const std::int64_t room = sim::capacity(base, point.model, point.options, context).max_sequences;
    prices.push_back({.choice = point.choice,
                      .workload = point.workload,
                      .seconds = priced.price.seconds,
                      .shifts = sim::prior_shifts(base, price),
                      .fits = room >= static_cast<std::int64_t>(point.batch.sequences.size())});
  }
  return prices;
}

[[nodiscard]] std::string group_text(int kv_heads, int query_heads) {
  return study::heads_text(kv_heads) + " (group size " + std::to_string(query_heads / kv_heads) + ")";
}

[[nodiscard]] std::string block_text(const study::StepDecision& decision, const std::string& machine) {
  return "→ " + machine + ", " + study::heads_text(decision.choice.kv_heads) + ": block size " +
         std::to_string(decision.choice.block_size) + "; " +
         costs_text(decision.blocks.evaluated, decision.blocks.verdict);
}

[[nodiscard]] std::string heads_line(const study::StepDecision& decision, const HeadsQuestion& question,
                                     const std::string& machine) {
  const std::string kept = group_text(decision.choice.kv_heads, question.query_heads);
  if (question.accuracy)
    return "→ " + machine + ": " + kept + ", the most within " + percent(question.speed_tie, 2) +
           " of the fastest, of the model's own " + std::to_string(question.own) + " and those that lose at most " +
           percent(question.tolerance, 2) + " of " + question.accuracy->metric + ", as measured on " +
           question.accuracy->model;
  return "→ " + machine + ": no number of KV heads is recommended, for the accuracy of " + question.model +
         " with others than its own " + std::to_string(question.own) +
         " is not known: a front of speed against KV heads kept";
}

[[nodiscard]] Json choice_json(sim::Choice choice, const study::EvaluatedChoices& choices) {
  return {{"num_key_value_heads", choice.kv_heads},
          {"block_size", choice.block_size},
          {"step_seconds", 1 / choices.at(choice).figure}};
}

[[nodiscard]] Json decision_json(const study::StepDecision& decision, const study::EvaluatedChoices& choices,
                                 const HeadsQuestion& question) {
  Json json = choice_json(decision.choice, choices);
  json["fastest"] = choice_json(decision.fastest, choices);
  const auto own = std::ranges::find_if(decision.kv_heads.choices, [&](const sim::Choice& choice) {
    return choice.kv_heads == question.own && choices.at(choice).figure > 0;
  });
  if (own != decision.kv_heads.choices.end()) {
    json["own_kv_heads"] = choice_json(*own, choices);
    json["own_kv_heads"]["slower"] = choices.at(decision.choice).figure / choices.at(*own).figure - 1;
  }
  json["kv_heads_by"] = question.accuracy ? "accuracy" : "own";
  json["block_sizes"] = costs_json(decision.blocks.evaluated, decision.blocks.verdict);
  json["kv_heads_front"] = Json::array();
  for (std::size_t index = 0; index < decision.kv_heads.choices.size(); ++index)
    if (decision.front[index]) json["kv_heads_front"].push_back(choice_json(decision.kv_heads.choices[index], choices));
  return json;
}

[[nodiscard]] std::optional<study::StepDecision> decide(const study::EvaluatedChoices& choices,
                                                        const HeadsQuestion& question, int usual_block_size) {
  std::optional<study::AllowedHeads> allowed;
  if (question.accuracy)
    allowed = study::AllowedHeads{.kv_heads = study::tolerated_kv_heads(*question.accuracy, question.query_heads,
                                                                        question.own, question.tolerance),
                                  .given_up = question.speed_tie};
  return study::decide_steps(choices, question.own, usual_block_size, allowed);
}

}  // namespace

HeadsQuestion heads_question(const config::Scenario& scenario) {
  const ModelShape model = study::resolve_model(scenario);
  HeadsQuestion question{.model = model.name,
                         .own = model.heads().num_key_value_heads,
                         .query_heads = model.heads().num_attention_heads,
                         .accuracy = {},
                         .tolerance = 0,
                         .speed_tie = 0};
  if (!scenario.accuracy) return question;
  question.accuracy = study::measured_accuracy(scenario);
  question.tolerance = scenario.accuracy->tolerance;
  question.speed_tie = scenario.accuracy->speed_tie;
  return question;
}

sim::Question recommendation_of(const std::vector<PricedPoint>& points, const HeadsQuestion& question,
                                const sim::Machine& base) {
  return [&points, &question, &base, prices = priced_choices(points, base)](const sim::Machine& machine) mutable {
    sim::StepPrice price;
    for (std::size_t index = 0; index < points.size(); ++index) {
      sim::price_step(machine_of(*points[index].point, machine, base), points[index].plan, price);
      prices[index].seconds = price.seconds;
    }
    const study::EvaluatedChoices choices = study::over_workloads(prices);
    const auto decision = decide(choices, question, base.stack.defaults.block_size);
    if (!decision) return sim::Answer{"nothing fits", 0};
    const sim::Choice best = decision->choice;
    return sim::Answer{study::heads_text(best.kv_heads) + ", block " + std::to_string(best.block_size),
                       1 / choices.at(best).figure};
  };
}

std::optional<study::StepDecision> step_decision(const std::vector<PricedPoint>& points, const HeadsQuestion& question,
                                                 const sim::Machine& machine) {
  return decide(study::over_workloads(priced_choices(points, machine)), question, machine.stack.defaults.block_size);
}

void add_recommendation(const std::vector<PricedPoint>& points, const HeadsQuestion& question,
                        const sim::Machine& machine, Report& report, Json& json) {
  const study::EvaluatedChoices choices = study::over_workloads(priced_choices(points, machine));
  std::vector<std::string>& notes = report.tables.back().notes;
  if (choices.size() < 2) {
    notes.push_back("Nothing to choose: the sweep has one number of KV heads and one block size.");
    return;
  }
  const auto decision = decide(choices, question, machine.stack.defaults.block_size);
  if (!decision) {
    notes.push_back("→ " + machine.name + ": no number of KV heads of the sweep loses at most " +
                    percent(question.tolerance, 2) + " of " + question.accuracy->metric);
    return;
  }
  const std::map<sim::Choice, study::AttentionCauses> causes = causes_by_choice(points);
  if (decision->blocks.choices.size() > 1) {
    report.tables.push_back(why_table(causes, choices, decision->choice, true));
    report.tables.back().notes.push_back(block_text(*decision, machine.name));
  }
  if (decision->kv_heads.choices.size() > 1) {
    report.tables.push_back(why_table(causes, choices, decision->choice, false));
    report.tables.back().notes.push_back(heads_line(*decision, question, machine.name));
  }
  json["recommendation"] = decision_json(*decision, choices, question);
}

}  // namespace dculab::cli
