#include "present/study/step_report.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "config/unit_text.hpp"
#include "present/study/model_comparison.hpp"
#include "present/study/recommendation.hpp"
#include "present/study/sensitivity_report.hpp"
#include "present/values/accuracy_text.hpp"
#include "present/values/leaning_report.hpp"
#include "present/values/op_report.hpp"
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

[[nodiscard]] std::vector<Cell> step_row(const study::StepFigures& point) {
  std::vector<Cell> row;
  for (const auto& [key, value] : point.choices) row.emplace_back(value);
  row.emplace_back(config::short_text(point.seconds), point.seconds.value());
  row.emplace_back(config::short_text(point.trust.low) + " .. " + config::short_text(point.trust.high));
  row.emplace_back(number(point.tokens_per_second), point.tokens_per_second);
  row.emplace_back(point.bound);
  row.emplace_back(std::to_string(point.max_sequences) + (point.max_sequences >= point.batch ? "" : ": no room"));
  return row;
}

[[nodiscard]] Json step_json(const study::StepFigures& point) {
  return {{"choices", choices_json(point.choices)},
          {"step_seconds", point.seconds.value()},
          {"interval_seconds", {point.trust.low.value(), point.trust.high.value()}},
          {"basis", sim::name(point.trust.basis)},
          {"tokens_per_second", point.tokens_per_second},
          {"bound", point.bound},
          {"max_sequences", point.max_sequences}};
}

// The sweep as a table, and as JSON under "points".
void add_step_points(const study::StepStudy& study, Report& report, Json& json) {
  Table table = empty_step_table(study);
  json["points"] = Json::array();
  for (const study::StepFigures& point : study.points) {
    table.rows.push_back(step_row(point));
    json["points"].push_back(step_json(point));
  }
  for (std::size_t index = 0; index < study.details.size(); ++index)
    json["points"][index]["ops"] = ops_json(study.details[index].plan, study.details[index].price, study.machine);
  report.tables.push_back(std::move(table));
}

void add_step_study(const study::StepStudy& study, Report& report) {
  const sim::Machine& machine = study.machine;
  add_warnings(report, study.unserved);
  Json json{{"machine", machine.name}};
  add_step_points(study, report, json);
  if (!study.left_out.empty()) report.tables.back().notes.push_back(left_out_text(machine.name, study.left_out));
  if (study.models)
    add_model_comparison(*study.models, machine.name, report, json);
  else
    add_recommendation(study, report, json);
  json["leans_on"] = add_leanings(machine, study.leanings, report);
  if (const auto& found = study.sensitivity)
    json["sensitivity"] = add_sensitivity(machine, found->choice, found->figures, found->within, "step_time", report);
  report.json["machines"].push_back(std::move(json));
}

}  // namespace

void add_step_studies(const std::vector<study::StepStudy>& machines, Report& report) {
  for (const study::StepStudy& study : machines) add_step_study(study, report);
  if (std::ranges::any_of(machines, &study::StepStudy::leaves_heads_open)) report.tables.push_back(elsewhere_table());
}

}  // namespace dculab::present
