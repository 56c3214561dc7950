#include "cli/study/group_study.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "cli/output/leaning_report.hpp"
#include "cli/study/compared_study.hpp"
#include "cli/study/variant_cost.hpp"
#include "config/unit_text.hpp"
#include "core/error.hpp"
#include "model/kv/kv_bytes.hpp"
#include "sim/calibration/confidence.hpp"
#include "sim/study/pareto.hpp"
#include "study/decide/attention_difference.hpp"
#include "study/decide/measured_accuracy.hpp"
#include "study/decide/preference.hpp"
#include "study/scenario/served.hpp"

namespace dculab::cli {
namespace {

constexpr const char* kHeadsKey = "model.num_key_value_heads";
constexpr const char* kRate = "output_tokens_per_second";

// All choices on one machine, the most KV heads first.
struct MachineChoices {
  std::string machine;
  std::vector<VariantCost> costs;
  std::vector<study::Evaluated> evaluated;    // output tokens per second; 0: does not fit
  std::vector<std::optional<double>> losses;  // relative to no merging; nothing: not measured
  std::vector<bool> front;                    // nothing else beats it in one respect and equals it in the others
  std::optional<study::Verdict> verdict;      // of those that lose no more than is tolerated
  std::optional<std::size_t> refused;         // the fastest that loses too much, if faster than the choice
};

[[nodiscard]] Bytes kv_bytes(const VariantCost& cost) {
  return kv_bytes_per_token(cost.model, cost.options.kv_cache_dtype);
}

[[nodiscard]] const study::GroupAccuracy* accuracy_of(const study::AccuracyCurve& curve, const VariantCost& cost) {
  const auto found = curve.by_group.find(cost.model.heads().group_size());
  return found == curve.by_group.end() ? nullptr : &found->second;
}

void check_sweep(const config::Scenario& scenario) {
  if (scenario.sweep.size() != 1 || scenario.sweep.front().key != kHeadsKey)
    throw InputError(scenario.file,
                     "accuracy: weighs KV heads, so sweep must be over " + std::string(kHeadsKey) + " alone");
  if (scenario.workload.kind != config::WorkloadKind::serving)
    throw InputError(scenario.file,
                     "accuracy: speed is that of the batch that fits; give workload.requests, "
                     "prompt_tokens and output_tokens");
}

// What nothing else beats in speed, memory and accuracy at once.
[[nodiscard]] std::vector<bool> front_of(const MachineChoices& choices) {
  sim::ParetoFront front;
  for (std::size_t index = 0; index < choices.costs.size(); ++index)
    if (choices.costs[index].fits() && choices.losses[index])
      front.offer(index, std::array{-choices.evaluated[index].figure, kv_bytes(choices.costs[index]).value(),
                                    *choices.losses[index]});
  std::vector<bool> on_front(choices.costs.size());
  for (const sim::ParetoFront::Point& point : front.points()) on_front[point.number] = true;
  return on_front;
}

void choose(MachineChoices& choices, const config::AccuracyChoice& accuracy) {
  std::vector<study::Evaluated> tolerated = choices.evaluated;
  for (std::size_t index = 0; index < tolerated.size(); ++index)
    if (!choices.losses[index] || *choices.losses[index] > accuracy.tolerance) tolerated[index].figure = 0;
  choices.verdict = study::decide(tolerated, {.given_up = accuracy.speed_tie});
  if (!choices.verdict) return;
  double fastest = choices.evaluated[choices.verdict->chosen].figure;
  for (std::size_t index = 0; index < tolerated.size(); ++index)
    if (choices.losses[index] && tolerated[index].figure == 0 && choices.evaluated[index].figure > fastest) {
      fastest = choices.evaluated[index].figure;
      choices.refused = index;
    }
}

[[nodiscard]] MachineChoices weigh(const config::Scenario& scenario, const study::AccuracyCurve& curve,
                                   const sim::Machine& machine) {
  MachineChoices choices{
      .machine = machine.name, .costs = {}, .evaluated = {}, .losses = {}, .front = {}, .verdict = {}, .refused = {}};
  for (const config::SweepPoint& point : config::sweep_points(scenario))
    choices.costs.push_back(cost_of(point.scenario, machine));
  std::sort(choices.costs.begin(), choices.costs.end(), [](const VariantCost& a, const VariantCost& b) {
    return a.model.heads().num_key_value_heads > b.model.heads().num_key_value_heads;
  });
  for (const VariantCost& cost : choices.costs) {
    study::Evaluated evaluated{.value = std::to_string(cost.model.heads().num_key_value_heads), .figure = 0};
    if (cost.fits()) {
      evaluated.figure = cost.figures.at(kRate);
      evaluated.shifts = sim::prior_shifts(machine, [&cost](const sim::Machine& moved) {
        return Seconds(1 / sim::price_recipe(moved, cost.recipe).value());
      });
    }
    choices.evaluated.push_back(std::move(evaluated));
    const study::GroupAccuracy* accuracy = accuracy_of(curve, cost);
    choices.losses.push_back(accuracy ? std::optional(accuracy->loss) : std::nullopt);
  }
  choices.front = front_of(choices);
  choose(choices, *scenario.accuracy);
  return choices;
}

[[nodiscard]] std::vector<const sim::Recipe*> recipes_of(const MachineChoices& choices) {
  std::vector<const sim::Recipe*> recipes;
  for (const VariantCost& cost : choices.costs)
    if (cost.fits()) recipes.push_back(&cost.recipe);
  return recipes;
}

[[nodiscard]] std::string heads_and_group(const VariantCost& cost) {
  return study::heads_text(cost.model.heads().num_key_value_heads) + " (group size " +
         std::to_string(cost.model.heads().group_size()) + ")";
}

[[nodiscard]] double faster(const MachineChoices& choices, std::size_t index, std::size_t than) {
  return choices.evaluated[index].figure / choices.evaluated[than].figure - 1;
}

[[nodiscard]] Cell rate_cell(const MachineChoices& choices, std::size_t index) {
  const double rate = choices.evaluated[index].figure;
  return {figure_text(kRate, rate), rate};
}

// Why this choice, and what stands next to it.
[[nodiscard]] std::string reason(const MachineChoices& choices, const study::AccuracyCurve& curve,
                                 const config::AccuracyChoice& accuracy) {
  if (!choices.verdict)
    return "→ " + choices.machine + ": nothing that fits loses at most " + percent(accuracy.tolerance, 2) + " of " +
           curve.metric;
  const study::Verdict& verdict = *choices.verdict;
  std::string text = "→ " + choices.machine + " should keep " + heads_and_group(choices.costs[verdict.chosen]) + ": ";
  const double loss = *choices.losses[verdict.chosen];
  text += "the most KV heads within " + percent(accuracy.speed_tie, 2) +
          " of the fastest, of those that lose at most " + percent(accuracy.tolerance, 2) + " (loses " +
          percent(std::max(0.0, loss), 2) + ")";
  if (verdict.runner_up)
    text += "; runner-up " + study::heads_text(choices.costs[*verdict.runner_up].model.heads().num_key_value_heads) +
            ", " + signed_percent(faster(choices, *verdict.runner_up, verdict.chosen)) + " speed";
  if (choices.refused)
    text += "; " + study::heads_text(choices.costs[*choices.refused].model.heads().num_key_value_heads) + " would be " +
            percent(faster(choices, *choices.refused, verdict.chosen), 3) + " faster and lose " +
            percent(*choices.losses[*choices.refused], 3);
  return text;
}

[[nodiscard]] Table machine_table(const MachineChoices& choices, const study::AccuracyCurve& curve,
                                  const config::AccuracyChoice& accuracy) {
  Table table;
  table.title = choices.costs.front().model.name + " on " + choices.machine;
  table.columns = {"KV heads",   "group",      "output", "speed",  "batch",
                   "KV / token", curve.metric, "loss",   "method", "front"};
  for (std::size_t index = 0; index < choices.costs.size(); ++index) {
    const VariantCost& cost = choices.costs[index];
    const study::GroupAccuracy* measured = accuracy_of(curve, cost);
    const bool chosen = choices.verdict && choices.verdict->chosen == index;
    const double speed = choices.costs.front().fits() ? faster(choices, index, 0) : 0;
    table.rows.push_back({choices.evaluated[index].value + (chosen ? " *" : ""),
                          std::to_string(cost.model.heads().group_size()),
                          cost.fits() ? rate_cell(choices, index) : Cell("no room"),
                          cost.fits() && index > 0 ? Cell(signed_percent(speed), speed) : Cell(""),
                          std::to_string(cost.batch) + (cost.batch_limit == "memory" ? " (memory)" : ""),
                          Cell(config::short_text(kv_bytes(cost)), kv_bytes(cost).value()),
                          measured ? Cell(number(measured->figure, 4), measured->figure) : Cell("not measured"),
                          measured ? Cell(signed_percent(measured->loss), measured->loss) : Cell(""),
                          measured ? measured->method : "", choices.front[index] ? "yes" : ""});
  }
  table.notes.push_back(reason(choices, curve, accuracy));
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
    const study::Verdict& verdict = *choices.verdict;
    const VariantCost& cost = choices.costs[verdict.chosen];
    const double speed = choices.costs.front().fits() ? faster(choices, verdict.chosen, 0) : 0;
    const std::string runner_up = verdict.runner_up
                                      ? choices.evaluated[*verdict.runner_up].value + ", " +
                                            signed_percent(faster(choices, *verdict.runner_up, verdict.chosen))
                                      : "none";
    table.rows.push_back({choices.machine, choices.evaluated[verdict.chosen].value,
                          std::to_string(cost.model.heads().group_size()), rate_cell(choices, verdict.chosen),
                          choices.costs.front().fits() ? Cell(signed_percent(speed), speed) : Cell("does not fit"),
                          std::to_string(cost.batch),
                          Cell(signed_percent(*choices.losses[verdict.chosen]), *choices.losses[verdict.chosen]),
                          runner_up});
  }
  return table;
}

[[nodiscard]] Json verdict_json(const MachineChoices& choices, const study::AccuracyCurve& curve,
                                const config::AccuracyChoice& accuracy) {
  Json json{{"machine", choices.machine}, {"points", Json::array()}};
  for (std::size_t index = 0; index < choices.costs.size(); ++index) {
    Json point = cli::to_json(choices.costs[index]);
    point["num_key_value_heads"] = choices.costs[index].model.heads().num_key_value_heads;
    point["group_size"] = choices.costs[index].model.heads().group_size();
    point["kv_bytes_per_token"] = kv_bytes(choices.costs[index]).value();
    if (const study::GroupAccuracy* measured = accuracy_of(curve, choices.costs[index])) {
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

void study_group_size(const config::Scenario& scenario, const std::vector<sim::Machine>& machines, Report& report) {
  check_sweep(scenario);
  const config::AccuracyChoice& accuracy = *scenario.accuracy;
  const study::AccuracyCurve curve = study::measured_accuracy(scenario);
  for (const std::string& assumption : run_assumptions(scenario)) report.heading.push_back(assumption);
  if (accuracy.model != scenario.model.name)
    report.heading.push_back("speed and memory are those of " + scenario.model.name + ", accuracy was measured on " +
                             accuracy.model + ", with the same group sizes: a larger model may lose less");
  std::vector<MachineChoices> all;
  for (const sim::Machine& machine : machines) all.push_back(weigh(scenario, curve, machine));
  for (const MachineChoices& choices : all)
    for (const VariantCost& cost : choices.costs)
      add_warnings(report, study::refused_kv(cost.machine, cost.model, cost.options));
  report.tables.push_back(summary_table(all));
  report.json["speed_model"] = scenario.model.name;
  report.json["accuracy_model"] = accuracy.model;
  report.json["tolerance"] = accuracy.tolerance;
  report.json["speed_tie"] = accuracy.speed_tie;
  report.json["machines"] = Json::array();
  for (std::size_t index = 0; index < all.size(); ++index) {
    report.tables.push_back(machine_table(all[index], curve, accuracy));
    Json json = verdict_json(all[index], curve, accuracy);
    json["leans_on"] = add_leanings(machines[index], recipes_of(all[index]), report);
    report.json["machines"].push_back(std::move(json));
  }
}

}  // namespace dculab::cli
