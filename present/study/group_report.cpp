#include "present/study/group_report.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "config/unit_text.hpp"
#include "present/output/field_csv.hpp"
#include "present/study/comparison_fields.hpp"
#include "study/decide/attention_difference.hpp"

namespace dculab::present {
namespace {

[[nodiscard]] std::string group_heads_text(const study::VariantCost& cost) {
  return study::heads_text(cost.model.heads().num_key_value_heads) + " (group size " +
         std::to_string(cost.model.heads().group_size()) + ")";
}

[[nodiscard]] std::string group_rate_cell(const study::GroupChoice& choices, std::size_t index) {
  return figure_text("output_tokens_per_second", choices.evaluated[index].figure);
}

// Why this choice, and what stands next to it.
[[nodiscard]] std::string group_reason(const study::GroupChoice& choices, const study::AccuracyCurve& curve,
                                       const config::AccuracyChoice& accuracy) {
  if (!choices.verdict)
    return "→ " + choices.machine + ": nothing that fits loses at most " + percent(accuracy.tolerance, 2) + " of " +
           curve.metric;
  const study::Verdict& verdict = *choices.verdict;
  std::string text = "→ " + choices.machine + " should keep " + group_heads_text(choices.costs[verdict.chosen]) + ": ";
  const double loss = *choices.losses[verdict.chosen];
  text += "the most KV heads within " + percent(accuracy.speed_tie, 2) +
          " of the fastest, of those that lose at most " + percent(accuracy.tolerance, 2) + " (loses " +
          percent(std::max(0.0, loss), 2) + ")";
  if (verdict.runner_up)
    text += "; runner-up " + study::heads_text(choices.costs[*verdict.runner_up].model.heads().num_key_value_heads) +
            ", " + signed_percent(choices.faster(*verdict.runner_up, verdict.chosen)) + " speed";
  if (choices.refused)
    text += "; " + study::heads_text(choices.costs[*choices.refused].model.heads().num_key_value_heads) + " would be " +
            percent(choices.faster(*choices.refused, verdict.chosen), 3) + " faster and lose " +
            percent(*choices.losses[*choices.refused], 3);
  return text;
}

[[nodiscard]] Table group_machine_table(const study::GroupChoice& choices, const study::AccuracyCurve& curve,
                                        const config::AccuracyChoice& accuracy) {
  Table table;
  table.title = choices.costs.front().model.name + " on " + choices.machine;
  table.columns = {"KV heads",   "group",      "output", "speed",  "batch",
                   "KV / token", curve.metric, "loss",   "method", "front"};
  for (std::size_t index = 0; index < choices.costs.size(); ++index) {
    const study::VariantCost& cost = choices.costs[index];
    const study::GroupAccuracy* measured = study::accuracy_of(curve, cost);
    const bool chosen = choices.verdict && choices.verdict->chosen == index;
    const double speed = choices.costs.front().fits() ? choices.faster(index, 0) : 0;
    table.rows.push_back(
        {choices.evaluated[index].value + (chosen ? " *" : ""), std::to_string(cost.model.heads().group_size()),
         cost.fits() ? group_rate_cell(choices, index) : "no room",
         cost.fits() && index > 0 ? signed_percent(speed) : "",
         std::to_string(cost.batch) + (cost.batch_limit == "memory" ? " (memory)" : ""),
         config::short_text(study::kv_bytes(cost)), measured ? number(measured->figure, 4) : "not measured",
         measured ? signed_percent(measured->loss) : "", measured ? measured->method : "",
         choices.front[index] ? "yes" : ""});
  }
  table.notes.push_back(group_reason(choices, curve, accuracy));
  return table;
}

[[nodiscard]] Table group_summary_table(const std::vector<study::GroupChoice>& all) {
  Table table;
  table.title = "What each machine should use";
  table.columns = {"machine", "KV heads", "group", "output", "against the first row", "batch", "loss", "runner-up"};
  for (const study::GroupChoice& choices : all) {
    if (!choices.verdict) {
      table.rows.push_back({choices.machine, "none", "", "", "", "", "", ""});
      continue;
    }
    const study::Verdict& verdict = *choices.verdict;
    const study::VariantCost& cost = choices.costs[verdict.chosen];
    const double speed = choices.costs.front().fits() ? choices.faster(verdict.chosen, 0) : 0;
    const std::string runner_up = verdict.runner_up
                                      ? choices.evaluated[*verdict.runner_up].value + ", " +
                                            signed_percent(choices.faster(*verdict.runner_up, verdict.chosen))
                                      : "none";
    table.rows.push_back({choices.machine, choices.evaluated[verdict.chosen].value,
                          std::to_string(cost.model.heads().group_size()), group_rate_cell(choices, verdict.chosen),
                          choices.costs.front().fits() ? signed_percent(speed) : "does not fit",
                          std::to_string(cost.batch), signed_percent(*choices.losses[verdict.chosen]), runner_up});
  }
  return table;
}

}  // namespace

void add_groups(const config::Scenario& scenario, const study::GroupStudy& study, Report& report) {
  const config::AccuracyChoice& accuracy = *scenario.accuracy;
  for (const std::string& assumption : run_assumptions(scenario)) report.heading.push_back(assumption);
  if (accuracy.model != scenario.model.name)
    report.heading.push_back("speed and memory are those of " + scenario.model.name + ", accuracy was measured on " +
                             accuracy.model + ", with the same group sizes: a larger model may lose less");
  for (const study::GroupChoice& choices : study.machines)
    for (const study::VariantCost& cost : choices.costs) add_warnings(report, cost.refused);
  report.tables.push_back(group_summary_table(study.machines));
  GroupStudies reported{scenario.model.name, accuracy.model, study.curve.metric, accuracy.tolerance,
                        accuracy.speed_tie};
  for (const study::GroupChoice& choices : study.machines) {
    const sim::Machine& machine = choices.costs.front().machine;
    report.tables.push_back(group_machine_table(choices, study.curve, accuracy));
    ReportedGroups group{choices, study.curve, group_reason(choices, study.curve, accuracy)};
    if (const auto input_sensitivities = study::input_sensitivities_of(choices)) {
      if (!reported.machine_facts) reported.machine_facts.emplace();
      set_of_machine(*reported.machine_facts, machine.name, machine_facts(machine));
      group.input_sensitivity = note_input_sensitivities(machine, *input_sensitivities, report.tables.back());
    }
    reported.machines.push_back(group);
  }
  set_answer(reported, report);
}

}  // namespace dculab::present
