#include "present/study/design_report.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "config/unit_text.hpp"
#include "present/output/field_csv.hpp"
#include "present/study/predicted_fields.hpp"
#include "study/decide/attention_difference.hpp"
#include "study/scenario/axis_title.hpp"

namespace dculab::present {
namespace {

constexpr std::string_view kMachineKeys = "machine.";

// "128" for machine.compute_units at 2 x: what the figure has come to; other axes as they are written.
[[nodiscard]] std::string choice_text(const config::Override& choice, const sim::Machine& machine) {
  const auto& [key, value] = choice;
  if (!key.starts_with(kMachineKeys)) return value;
  const std::string figure = key.substr(kMachineKeys.size());
  return figure_text(machine, figure, *sim::figure_value(machine, figure));
}

// "L2.size" for machine.memory.L2.size
[[nodiscard]] std::string design_title(const std::string& key) {
  constexpr std::string_view kLevels = "machine.memory.";
  return key.starts_with(kLevels) ? key.substr(kLevels.size()) : study::axis_title(key);
}

[[nodiscard]] std::string own_text(const std::string& key, const sim::Machine& machine) {
  if (!key.starts_with(kMachineKeys)) return "";
  const std::string figure = key.substr(kMachineKeys.size());
  const std::optional<double> value = sim::figure_value(machine, figure);
  return value ? figure_text(machine, figure, *value) : "";
}

[[nodiscard]] Row design_row(const study::DecidedDesign& design, Seconds first, bool is_first) {
  Row row;
  for (const config::Override& choice : design.choices) row.emplace_back(choice_text(choice, design.machine));
  row.emplace_back(std::to_string(design.choice.kv_heads));
  row.emplace_back(std::to_string(design.model.heads().group_size()));
  row.emplace_back(std::to_string(design.choice.block_size));
  row.emplace_back(config::short_text(design.seconds));
  row.emplace_back(config::short_text(design.trust.low) + " .. " + config::short_text(design.trust.high));
  const double change = design.seconds / first - 1;
  row.push_back(is_first ? "" : signed_percent(change, 2));
  row.emplace_back(design.bound);
  return row;
}

// How the choice moves from design to design.
[[nodiscard]] std::string movement_text(const std::vector<study::DecidedDesign>& designs) {
  const sim::Choice first = designs.front().choice;
  std::set<sim::Choice> others;
  std::size_t moved = 0;
  for (const study::DecidedDesign& design : designs) {
    if (design.choice == first) continue;
    ++moved;
    others.insert(design.choice);
  }
  std::string text = "→ " + study::heads_text(first.kv_heads) + ", block " + std::to_string(first.block_size) + " in " +
                     std::to_string(designs.size() - moved) + " of " + std::to_string(designs.size()) +
                     " designs, the first among them";
  for (const sim::Choice& other : others)
    text += "; elsewhere " + study::heads_text(other.kv_heads) + ", block " + std::to_string(other.block_size);
  const auto [fastest, slowest] = std::ranges::minmax_element(designs, {}, &study::DecidedDesign::seconds);
  return text + "; a step takes " + config::short_text(fastest->seconds) + " to " +
         config::short_text(slowest->seconds);
}

[[nodiscard]] Table design_table(const std::string& model, const study::DesignStudy& study) {
  const sim::Machine& own = study.own;
  Table table;
  table.title = model + " on designs that start from " + own.name;
  for (const auto& [key, value] : study.designs.front().choices) {
    const std::string text = own_text(key, own);
    table.columns.push_back(design_title(key) + (text.empty() ? "" : " (" + text + ")"));
  }
  for (const char* column : {"KV heads", "group", "block", "step", "90 % interval", "against the first", "bound"})
    table.columns.emplace_back(column);
  const study::DecidedDesign& first = study.designs.front();
  for (const study::DecidedDesign& design : study.designs)
    table.rows.push_back(design_row(design, first.seconds, &design == &first));
  const sim::Machine& last = study.designs.back().machine;
  if (last.redesign) table.notes.push_back(redesign_text(last) + ".");
  table.notes.push_back(movement_text(study.designs));
  const std::string basis = own.calibration ? "calibrated on traces" : "not calibrated: data sheet and priors";
  table.notes.push_back(own.name + ": " + basis + ".");
  return table;
}

}  // namespace

void add_designs(const std::string& model, const std::vector<study::DesignStudy>& studies, Report& report) {
  DesignStudies reported;
  for (const study::DesignStudy& study : studies) {
    for (const study::DecidedDesign& design : study.designs) add_warnings(report, design.refused);
    report.tables.push_back(design_table(model, study));
    reported.designs.push_back(
        ReportedDesigns{study, note_input_sensitivities(study.own, study.input_sensitivities, report.tables.back())});
    set_of_machine(reported.machine_facts, study.own.name, machine_facts(study.own));
  }
  set_answer(reported, report);
}

}  // namespace dculab::present
