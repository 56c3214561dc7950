#include "cli/study/group_study.hpp"

#include <algorithm>
#include <string>

#include "cli/study/compared_study.hpp"
#include "config/unit_text.hpp"
#include "present/study/variant_text.hpp"
#include "present/values/leaning_report.hpp"
#include "study/decide/attention_difference.hpp"
#include "study/decide/group_choice.hpp"

namespace dculab::cli {
namespace {

constexpr const char* kRate = "output_tokens_per_second";

[[nodiscard]] std::vector<const sim::Recipe*> recipes_of(const study::GroupChoice& choices) {
  std::vector<const sim::Recipe*> recipes;
  for (const study::VariantCost& cost : choices.costs)
    if (cost.fits()) recipes.push_back(&cost.recipe);
  return recipes;
}

[[nodiscard]] std::string heads_and_group(const study::VariantCost& cost) {
  return study::heads_text(cost.model.heads().num_key_value_heads) + " (group size " +
         std::to_string(cost.model.heads().group_size()) + ")";
}

[[nodiscard]] double faster(const study::GroupChoice& choices, std::size_t index, std::size_t than) {
  return choices.evaluated[index].figure / choices.evaluated[than].figure - 1;
}

[[nodiscard]] present::Cell rate_cell(const study::GroupChoice& choices, std::size_t index) {
  const double rate = choices.evaluated[index].figure;
  return {present::figure_text(kRate, rate), rate};
}

// Why this choice, and what stands next to it.
[[nodiscard]] std::string reason(const study::GroupChoice& choices, const study::AccuracyCurve& curve,
                                 const config::AccuracyChoice& accuracy) {
  if (!choices.verdict)
    return "→ " + choices.machine + ": nothing that fits loses at most " + present::percent(accuracy.tolerance, 2) +
           " of " + curve.metric;
  const study::Verdict& verdict = *choices.verdict;
  std::string text = "→ " + choices.machine + " should keep " + heads_and_group(choices.costs[verdict.chosen]) + ": ";
  const double loss = *choices.losses[verdict.chosen];
  text += "the most KV heads within " + present::percent(accuracy.speed_tie, 2) +
          " of the fastest, of those that lose at most " + present::percent(accuracy.tolerance, 2) + " (loses " +
          present::percent(std::max(0.0, loss), 2) + ")";
  if (verdict.runner_up)
    text += "; runner-up " + study::heads_text(choices.costs[*verdict.runner_up].model.heads().num_key_value_heads) +
            ", " + present::signed_percent(faster(choices, *verdict.runner_up, verdict.chosen)) + " speed";
  if (choices.refused)
    text += "; " + study::heads_text(choices.costs[*choices.refused].model.heads().num_key_value_heads) + " would be " +
            present::percent(faster(choices, *choices.refused, verdict.chosen), 3) + " faster and lose " +
            present::percent(*choices.losses[*choices.refused], 3);
  return text;
}

[[nodiscard]] present::Table machine_table(const study::GroupChoice& choices, const study::AccuracyCurve& curve,
                                           const config::AccuracyChoice& accuracy) {
  present::Table table;
  table.title = choices.costs.front().model.name + " on " + choices.machine;
  table.columns = {"KV heads",   "group",      "output", "speed",  "batch",
                   "KV / token", curve.metric, "loss",   "method", "front"};
  for (std::size_t index = 0; index < choices.costs.size(); ++index) {
    const study::VariantCost& cost = choices.costs[index];
    const study::GroupAccuracy* measured = study::accuracy_of(curve, cost);
    const bool chosen = choices.verdict && choices.verdict->chosen == index;
    const double speed = choices.costs.front().fits() ? faster(choices, index, 0) : 0;
    table.rows.push_back(
        {choices.evaluated[index].value + (chosen ? " *" : ""), std::to_string(cost.model.heads().group_size()),
         cost.fits() ? rate_cell(choices, index) : present::Cell("no room"),
         cost.fits() && index > 0 ? present::Cell(present::signed_percent(speed), speed) : present::Cell(""),
         std::to_string(cost.batch) + (cost.batch_limit == "memory" ? " (memory)" : ""),
         present::Cell(config::short_text(study::kv_bytes(cost)), study::kv_bytes(cost).value()),
         measured ? present::Cell(present::number(measured->figure, 4), measured->figure)
                  : present::Cell("not measured"),
         measured ? present::Cell(present::signed_percent(measured->loss), measured->loss) : present::Cell(""),
         measured ? measured->method : "", choices.front[index] ? "yes" : ""});
  }
  table.notes.push_back(reason(choices, curve, accuracy));
  return table;
}

[[nodiscard]] present::Table summary_table(const std::vector<study::GroupChoice>& all) {
  present::Table table;
  table.title = "What each machine should use";
  table.columns = {"machine", "KV heads", "group", "output", "against the first row", "batch", "loss", "runner-up"};
  for (const study::GroupChoice& choices : all) {
    if (!choices.verdict) {
      table.rows.push_back({choices.machine, "none", "", "", "", "", "", ""});
      continue;
    }
    const study::Verdict& verdict = *choices.verdict;
    const study::VariantCost& cost = choices.costs[verdict.chosen];
    const double speed = choices.costs.front().fits() ? faster(choices, verdict.chosen, 0) : 0;
    const std::string runner_up = verdict.runner_up
                                      ? choices.evaluated[*verdict.runner_up].value + ", " +
                                            present::signed_percent(faster(choices, *verdict.runner_up, verdict.chosen))
                                      : "none";
    table.rows.push_back(
        {choices.machine, choices.evaluated[verdict.chosen].value, std::to_string(cost.model.heads().group_size()),
         rate_cell(choices, verdict.chosen),
         choices.costs.front().fits() ? present::Cell(present::signed_percent(speed), speed)
                                      : present::Cell("does not fit"),
         std::to_string(cost.batch),
         present::Cell(present::signed_percent(*choices.losses[verdict.chosen]), *choices.losses[verdict.chosen]),
         runner_up});
  }
  return table;
}

[[nodiscard]] present::Json verdict_json(const study::GroupChoice& choices, const study::AccuracyCurve& curve,
                                         const config::AccuracyChoice& accuracy) {
  present::Json json{{"machine", choices.machine}, {"points", present::Json::array()}};
  for (std::size_t index = 0; index < choices.costs.size(); ++index) {
    present::Json point = present::to_json(choices.costs[index]);
    point["num_key_value_heads"] = choices.costs[index].model.heads().num_key_value_heads;
    point["group_size"] = choices.costs[index].model.heads().group_size();
    point["kv_bytes_per_token"] = study::kv_bytes(choices.costs[index]).value();
    if (const study::GroupAccuracy* measured = study::accuracy_of(curve, choices.costs[index])) {
      point[curve.metric] = measured->figure;
      point["loss"] = measured->loss;
      point["method"] = measured->method;
    }
    point["pareto"] = static_cast<bool>(choices.front[index]);
    json["points"].push_back(std::move(point));
  }
  json["reason"] = reason(choices, curve, accuracy);
  if (!choices.verdict) return json;
  json["recommendation"] = {
      {"num_key_value_heads", choices.costs[choices.verdict->chosen].model.heads().num_key_value_heads}};
  if (choices.verdict->runner_up) {
    json["runner_up"] = {
        {"num_key_value_heads", choices.costs[*choices.verdict->runner_up].model.heads().num_key_value_heads},
        {"speed", faster(choices, *choices.verdict->runner_up, choices.verdict->chosen)}};
  }
  return json;
}

}  // namespace

void study_group_size(const config::Scenario& scenario, const std::vector<sim::Machine>& machines,
                      present::Report& report) {
  study::require_swept_heads(scenario);
  const config::AccuracyChoice& accuracy = *scenario.accuracy;
  const study::AccuracyCurve curve = study::measured_accuracy(scenario);
  for (const std::string& assumption : run_assumptions(scenario)) report.heading.push_back(assumption);
  if (accuracy.model != scenario.model.name)
    report.heading.push_back("speed and memory are those of " + scenario.model.name + ", accuracy was measured on " +
                             accuracy.model + ", with the same group sizes: a larger model may lose less");
  std::vector<study::GroupChoice> all;
  for (const sim::Machine& machine : machines) all.push_back(study::choose_group(scenario, curve, machine));
  for (const study::GroupChoice& choices : all)
    for (const study::VariantCost& cost : choices.costs)
      present::add_warnings(report, cost.refused);
  report.tables.push_back(summary_table(all));
  report.json["speed_model"] = scenario.model.name;
  report.json["accuracy_model"] = accuracy.model;
  report.json["tolerance"] = accuracy.tolerance;
  report.json["speed_tie"] = accuracy.speed_tie;
  report.json["machines"] = present::Json::array();
  for (std::size_t index = 0; index < all.size(); ++index) {
    report.tables.push_back(machine_table(all[index], curve, accuracy));
    present::Json json = verdict_json(all[index], curve, accuracy);
    json["leans_on"] = present::add_leanings(machines[index], recipes_of(all[index]), report);
    report.json["machines"].push_back(std::move(json));
  }
}

}  // namespace dculab::cli
