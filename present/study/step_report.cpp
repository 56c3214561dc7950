#include "present/study/step_report.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "config/unit_text.hpp"
#include "present/output/conclusion.hpp"
#include "present/output/field_csv.hpp"
#include "present/study/model_comparison.hpp"
#include "present/study/predicted_fields.hpp"
#include "present/study/recommendation.hpp"
#include "present/values/accuracy_text.hpp"
#include "present/values/verdict_text.hpp"
#include "study/scenario/axis_title.hpp"
#include "study/scenario/stacks.hpp"

namespace dculab::present {
namespace {

[[nodiscard]] Table empty_step_table(const study::StepStudy& study) {
  const sim::Machine& machine = study.machine;
  const std::vector<config::Override>& choices = study.points.front().choices;
  Table table;
  table.title = (study.models ? "Steps" : study.model) + " on " + machine.name;
  for (const auto& [key, value] : choices) table.columns.push_back(study::axis_title(key));
  for (const char* column : {"step", "90 % interval", "tokens/s", "bound", "sequences that fit"})
    table.columns.emplace_back(column);
  const std::string basis = machine.calibration ? "calibrated on traces" : "not calibrated: data sheet and priors";
  const bool sweeps_stacks = std::ranges::any_of(
      choices, [](const auto& choice) { return choice.first == "stack" || choice.first == "stack.name"; });
  table.notes.push_back(machine.name + ": " + basis +
                        (sweeps_stacks ? "." : "; " + study::whose_kernels(machine) + "."));
  return table;
}

[[nodiscard]] Row step_row(const study::StepFigures& point) {
  Row row;
  for (const auto& [key, value] : point.choices) row.emplace_back(value);
  row.emplace_back(config::short_text(point.seconds));
  row.emplace_back(config::short_text(point.trust->low) + " .. " + config::short_text(point.trust->high));
  row.emplace_back(number(point.tokens_per_second));
  row.emplace_back(point.bound);
  row.emplace_back(std::to_string(point.max_sequences) + (point.max_sequences >= point.batch ? "" : ": no room"));
  return row;
}

[[nodiscard]] std::string misfit_text(const std::string& machine, std::int64_t most) {
  return machine + ": no point fits in memory (" +
         (most == 1 ? "one sequence does" : std::to_string(most) + " sequences do") +
         " at most), so these are the times as if it did; take a smaller batch, fewer bits or more devices";
}

[[nodiscard]] Table step_table(const study::StepStudy& study) {
  Table table = empty_step_table(study);
  for (const study::StepFigures& point : study.points) table.rows.push_back(step_row(point));
  if (!study.left_out.empty()) table.notes.push_back(left_out_text(study.machine.name, study.left_out));
  return table;
}

[[nodiscard]] ReportedSteps add_step_study(const study::StepStudy& study, Report& report) {
  const sim::Machine& machine = study.machine;
  ReportedSteps reported{study};
  add_warnings(report, study.unserved);
  if (const auto most = study.most_where_none_fits()) add_warnings(report, {misfit_text(machine.name, *most)});
  report.tables.push_back(step_table(study));
  if (study.models)
    add_model_comparison(*study.models, machine.name, report);
  else
    reported.recommendation = add_recommendation(study, report);
  reported.input_sensitivity = note_input_sensitivities(machine, study.input_sensitivities, report.tables.back());
  if (const auto& found = study.sensitivity)
    reported.sensitivity = add_sensitivity(machine, found->choice, found->figures, found->within, "step_time", report);
  return reported;
}

// " (no room for 32 KV heads)"
[[nodiscard]] std::string no_room_text(const study::StepStudy& study) {
  std::string heads;
  for (const sim::Choice& each : study.decision->kv_heads.choices)
    if (study.choices.at(each).figure == 0) heads += (heads.empty() ? "" : ", ") + std::to_string(each.kv_heads);
  return heads.empty() ? "" : " (no room for " + heads + " KV heads)";
}

// Why a newer machine may be the slower one: " Every step waits for DRAM; its bandwidth is 1.02 TB/s on z100, ...".
[[nodiscard]] std::string bandwidth_text(const std::vector<study::StepStudy>& machines) {
  std::string text;
  for (const study::StepStudy& study : machines) {
    const sim::MemoryLevel& dram = study.machine.dram();
    const auto waits = [&dram](const study::StepFigures& point) { return point.bound == dram.name; };
    if (machines.size() < 2 || !std::ranges::all_of(study.points, waits)) return {};
    text += (text.empty() ? " Every step waits for " + dram.name + "; its bandwidth is " : ", ") +
            config::short_text(dram.bandwidth) + " on " + study.machine.name;
  }
  return text + ".";
}

// The recommended step on every machine that has one.
void conclude_steps(const std::vector<study::StepStudy>& machines, Report& report) {
  std::string sentence;
  for (const study::StepStudy& study : machines) {
    if (const auto most = study.most_where_none_fits()) conclude(report, misfit_text(study.machine.name, *most) + ".");
    if (!study.decision || study.most_where_none_fits()) continue;
    const sim::Choice choice = study.decision->choice;
    sentence += (sentence.empty() ? study.model + " would take " : ", ") +
                config::short_text(Seconds(1 / study.choices.at(choice).figure)) + " a step on " + study.machine.name +
                " with " + study::heads_text(choice.kv_heads) + " and block size " + std::to_string(choice.block_size) +
                no_room_text(study);
  }
  if (!sentence.empty()) conclude(report, sentence + "." + bandwidth_text(machines));
}

}  // namespace

void add_step_studies(const std::vector<study::StepStudy>& machines, Report& report) {
  StepStudies reported;
  for (const study::StepStudy& study : machines) {
    reported.machines.push_back(add_step_study(study, report));
    set_of_machine(reported.machine_facts, study.machine.name, machine_facts(study.machine));
  }
  set_answer(reported, report);
  conclude_steps(machines, report);
  if (std::ranges::any_of(machines, &study::StepStudy::leaves_heads_open)) report.tables.push_back(elsewhere_table());
}

}  // namespace dculab::present
