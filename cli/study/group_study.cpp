#include "cli/study/group_study.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "cli/output/leaning_report.hpp"
#include "cli/study/compared_study.hpp"
#include "cli/study/recommendation.hpp"
#include "cli/study/variant_cost.hpp"
#include "config/unit_text.hpp"
#include "core/error.hpp"
#include "sim/study/group_choice.hpp"
#include "study/decide/attention_difference.hpp"
#include "study/decide/measured_accuracy.hpp"

namespace dculab::cli {
namespace {

constexpr const char* kHeadsKey = "model.num_key_value_heads";
constexpr const char* kRate = "output_tokens_per_second";

using Accuracies = std::map<int, study::GroupAccuracy>;

// All choices on one machine, the most KV heads first.
struct MachineChoices {
  std::string machine;
  std::vector<VariantCost> costs;
  std::vector<sim::GroupOption> options;
  std::vector<bool> front;
  std::optional<sim::GroupVerdict> verdict;
};

[[nodiscard]] const study::GroupAccuracy* accuracy_of(const Accuracies& accuracies, const VariantCost& cost) {
  const auto found = accuracies.find(cost.model.group_size());
  return found == accuracies.end() ? nullptr : &found->second;
}

void check_sweep(const config::Scenario& scenario) {
  if (scenario.sweep.size() != 1 || scenario.sweep.front().key != kHeadsKey)
    throw InputError(scenario.file, "accuracy: weighs KV heads, so sweep must be over model.num_key_value_heads alone");
  if (scenario.workload.kind != config::WorkloadKind::serving)
    throw InputError(scenario.file,
                     "accuracy: speed is that of the batch that fits; give workload.requests, "
                     "prompt_tokens and output_tokens");
}

[[nodiscard]] MachineChoices weigh(const config::Scenario& scenario, const Accuracies& accuracies,
                                   const sim::Machine& machine) {
  MachineChoices choices{machine.name, {}, {}, {}, {}};
  for (const config::SweepPoint& point : config::sweep_points(scenario))
    choices.costs.push_back(cost_of(point.scenario, machine));
  std::sort(choices.costs.begin(), choices.costs.end(), [](const VariantCost& a, const VariantCost& b) {
    return a.model.num_key_value_heads > b.model.num_key_value_heads;
  });
  for (const VariantCost& cost : choices.costs) {
    sim::GroupOption option{cost.model.num_key_value_heads,
                            cost.fits() ? cost.figures.at(kRate) : 0,
                            kv_bytes_per_token(cost.model, cost.options.kv_cache_dtype),
                            {}};
    if (const study::GroupAccuracy* accuracy = accuracy_of(accuracies, cost)) option.accuracy_loss = accuracy->loss;
    choices.options.push_back(option);
  }
  choices.front = sim::pareto_front(choices.options);
  choices.verdict = sim::choose_group(choices.options, scenario.accuracy->tolerance, scenario.accuracy->speed_tie);
  return choices;
}

[[nodiscard]] std::vector<const sim::Recipe*> recipes_of(const MachineChoices& choices) {
  std::vector<const sim::Recipe*> recipes;
  for (const VariantCost& cost : choices.costs)
    if (cost.fits()) recipes.push_back(&cost.recipe);
  return recipes;
}

[[nodiscard]] std::string heads_and_group(const VariantCost& cost) {
  return study::heads_text(cost.model.num_key_value_heads) + " (group size " + std::to_string(cost.model.group_size()) +
         ")";
}

[[nodiscard]] double faster(const MachineChoices& choices, std::size_t index, std::size_t than) {
  return choices.options[index].tokens_per_second / choices.options[than].tokens_per_second - 1;
}

// Why this choice, and what stands next to it.
[[nodiscard]] std::string reason(const MachineChoices& choices, const config::AccuracyChoice& accuracy) {
  if (!choices.verdict)
    return "→ " + choices.machine + ": nothing that fits loses at most " + percent(accuracy.tolerance, 2) + " of " +
           accuracy.metric;
  const sim::GroupVerdict& verdict = *choices.verdict;
  std::string text = "→ " + choices.machine + " should keep " + heads_and_group(choices.costs[verdict.best]) + ": ";
  const double loss = *choices.options[verdict.best].accuracy_loss;
  text += "the fastest within a tie of " + percent(accuracy.speed_tie, 2) + " that loses at most " +
          percent(accuracy.tolerance, 2) + " (loses " + percent(std::max(0.0, loss), 2) + ")";
  if (verdict.runner_up)
    text += "; runner-up " + study::heads_text(choices.options[*verdict.runner_up].kv_heads) + ", " +
            signed_percent(faster(choices, *verdict.runner_up, verdict.best)) + " speed";
  if (verdict.refused)
    text += "; " + study::heads_text(choices.options[*verdict.refused].kv_heads) + " would be " +
            percent(faster(choices, *verdict.refused, verdict.best), 3) + " faster and lose " +
            percent(*choices.options[*verdict.refused].accuracy_loss, 3);
  return text;
}

[[nodiscard]] Table machine_table(const MachineChoices& choices, const Accuracies& accuracies,
                                  const config::AccuracyChoice& accuracy) {
  Table table;
  table.title = choices.costs.front().model.name + " on " + choices.machine;
  table.columns = {"KV heads",   "group",         "output", "speed",  "batch",
                   "KV / token", accuracy.metric, "loss",   "method", "front"};
  for (std::size_t index = 0; index < choices.costs.size(); ++index) {
    const VariantCost& cost = choices.costs[index];
    const sim::GroupOption& option = choices.options[index];
    const study::GroupAccuracy* measured = accuracy_of(accuracies, cost);
    const bool chosen = choices.verdict && choices.verdict->best == index;
    const double speed = choices.costs.front().fits() ? faster(choices, index, 0) : 0;
    table.rows.push_back(
        {std::to_string(option.kv_heads) + (chosen ? " *" : ""), std::to_string(cost.model.group_size()),
         cost.fits() ? Cell(figure_text(kRate, option.tokens_per_second), option.tokens_per_second) : Cell("no room"),
         cost.fits() && index > 0 ? Cell(signed_percent(speed), speed) : Cell(""),
         std::to_string(cost.batch) + (cost.batch_limit == "memory" ? " (memory)" : ""),
         Cell(config::short_text(option.kv_bytes_per_token), option.kv_bytes_per_token.value()),
         measured ? Cell(number(measured->figure, 4), measured->figure) : Cell("not measured"),
         measured ? Cell(signed_percent(measured->loss), measured->loss) : Cell(""), measured ? measured->method : "",
         choices.front[index] ? "yes" : ""});
  }
  table.notes.push_back(reason(choices, accuracy));
  return table;
}

[[nodiscard]] Table summary_table(const std::vector<MachineChoices>& all) {
  Table table;
  table.title = "What each machine should use";
  table.columns = {"machine", "KV heads", "group", "output", "against the first row", "batch", "loss", "runner-up"};
  for (const MachineChoices& choices : all) {
    if (!choices.verdict) {
      table.rows.push_back({choices.machine, "none", "", "", "", "", "", ""});
      continue;
    }
    const sim::GroupVerdict& verdict = *choices.verdict;
    const VariantCost& cost = choices.costs[verdict.best];
    const sim::GroupOption& option = choices.options[verdict.best];
    const double speed = choices.costs.front().fits() ? faster(choices, verdict.best, 0) : 0;
    const std::string runner_up = verdict.runner_up
                                      ? std::to_string(choices.options[*verdict.runner_up].kv_heads) + ", " +
                                            signed_percent(faster(choices, *verdict.runner_up, verdict.best))
                                      : "none";
    table.rows.push_back({choices.machine, std::to_string(option.kv_heads), std::to_string(cost.model.group_size()),
                          Cell(figure_text(kRate, option.tokens_per_second), option.tokens_per_second),
                          choices.costs.front().fits() ? Cell(signed_percent(speed), speed) : Cell("does not fit"),
                          std::to_string(cost.batch),
                          Cell(signed_percent(*option.accuracy_loss), *option.accuracy_loss), runner_up});
  }
  return table;
}

[[nodiscard]] Json to_json(const MachineChoices& choices, const Accuracies& accuracies,
                           const config::AccuracyChoice& accuracy) {
  Json json{{"machine", choices.machine}, {"points", Json::array()}};
  for (std::size_t index = 0; index < choices.costs.size(); ++index) {
    Json point = cli::to_json(choices.costs[index]);
    point["num_key_value_heads"] = choices.options[index].kv_heads;
    point["group_size"] = choices.costs[index].model.group_size();
    point["kv_bytes_per_token"] = choices.options[index].kv_bytes_per_token.value();
    if (const study::GroupAccuracy* measured = accuracy_of(accuracies, choices.costs[index])) {
      point[accuracy.metric] = measured->figure;
      point["loss"] = measured->loss;
      point["method"] = measured->method;
    }
    point["pareto"] = static_cast<bool>(choices.front[index]);
    json["points"].push_back(std::move(point));
  }
  json["reason"] = reason(choices, accuracy);
  if (!choices.verdict) return json;
  json["recommendation"] = {{"num_key_value_heads", choices.options[choices.verdict->best].kv_heads}};
  if (choices.verdict->runner_up) {
    json["runner_up"] = {{"num_key_value_heads", choices.options[*choices.verdict->runner_up].kv_heads},
                         {"speed", faster(choices, *choices.verdict->runner_up, choices.verdict->best)}};
  }
  return json;
}

}  // namespace

void study_group_size(const config::Scenario& scenario, const std::vector<sim::Machine>& machines, Report& report) {
  check_sweep(scenario);
  const config::AccuracyChoice& accuracy = *scenario.accuracy;
  const Accuracies accuracies = study::measured_accuracy(scenario);
  for (const std::string& assumption : run_assumptions(scenario)) report.heading.push_back(assumption);
  if (accuracy.model != scenario.model.name)
    report.heading.push_back("speed and memory are those of " + scenario.model.name + ", accuracy was measured on " +
                             accuracy.model + ", with the same group sizes: a larger model may lose less");
  std::vector<MachineChoices> all;
  for (const sim::Machine& machine : machines) all.push_back(weigh(scenario, accuracies, machine));
  report.tables.push_back(summary_table(all));
  report.json["speed_model"] = scenario.model.name;
  report.json["accuracy_model"] = accuracy.model;
  report.json["tolerance"] = accuracy.tolerance;
  report.json["speed_tie"] = accuracy.speed_tie;
  report.json["machines"] = Json::array();
  for (std::size_t index = 0; index < all.size(); ++index) {
    report.tables.push_back(machine_table(all[index], accuracies, accuracy));
    Json json = to_json(all[index], accuracies, accuracy);
    json["leans_on"] = add_leanings(machines[index], recipes_of(all[index]), report);
    report.json["machines"].push_back(std::move(json));
  }
}

}  // namespace dculab::cli
