#include "present/values/shipped_report.hpp"

#include <string>
#include <utility>
#include <vector>

#include "config/unit_text.hpp"
#include "present/output/field_csv.hpp"

namespace dculab::present {
namespace {

// "8.03 B"
[[nodiscard]] std::string billions(double count) { return number(count / 1e9) + " B"; }

[[nodiscard]] Row row_of(const study::ShippedModel& model) {
  std::string parameters = billions(model.parameters), attention = model.attention;
  if (model.active_parameters < model.parameters) parameters += ", " + billions(model.active_parameters) + " active";
  if (attention == "MHA" || attention == "GQA" || attention == "MQA")
    attention += " " + std::to_string(model.num_attention_heads) + "/" + std::to_string(model.num_key_value_heads);
  return {model.name, parameters, attention, std::to_string(model.num_layers),
          std::to_string(model.max_position_embeddings)};
}

[[nodiscard]] Row row_of(const study::ShippedMachine& machine) {
  return {machine.name, config::short_text(machine.memory), config::short_text(machine.bandwidth),
          machine.peak ? config::short_text(*machine.peak) : "-", machine.description};
}

[[nodiscard]] Row row_of(const study::ShippedStack& stack) { return {stack.name, stack.program, stack.description}; }

[[nodiscard]] Row row_of(const study::ShippedScenario& scenario) { return {scenario.name, scenario.question}; }

template <class Item>
void add_table(const std::vector<Item>& items, std::string title, std::vector<std::string> columns, Report& report) {
  if (items.empty()) return;
  Table& table =
      report.tables.emplace_back(Table{.title = std::move(title), .columns = std::move(columns), .notes = {}});
  for (const Item& item : items) table.rows.push_back(row_of(item));
}

}  // namespace

Report shipped_report(const study::Shipped& shipped) {
  Report report = report_of("dculab/list/1", shipped);
  add_warnings(report, shipped.unreadable);
  add_table(shipped.models, "Models (--model)",
            {"model", "parameters", "attention, query/KV heads", "layers", "longest context"}, report);
  add_table(shipped.machines, "Machines (--machine)", {"machine", "memory", "bandwidth", "FP16 peak", "what it is"},
            report);
  add_table(shipped.stacks, "Stacks (--stack)", {"stack", "program", "version and kernels"}, report);
  add_table(shipped.scenarios, "Scenarios (for study and simulate)", {"scenario", "question"}, report);
  return report;
}

}  // namespace dculab::present
