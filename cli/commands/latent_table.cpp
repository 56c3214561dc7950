// `dculab tables latents`: which of MLA's two forms is cheaper.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands/commands.hpp"
#include "cli/output_options.hpp"
#include "cli/scenario/checks.hpp"
#include "cli/scenario/file_options.hpp"
#include "cli/scenario/step_choices.hpp"
#include "config/unit_text.hpp"
#include "core/error.hpp"
#include "sim/tables/latent_forms.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/served.hpp"

namespace dculab::cli {
namespace {

// New tokens of a sequence, up to its whole context.
[[nodiscard]] std::vector<int> powers_up_to(int context) {
  std::vector<int> counts;
  for (int count = 1; count < context; count *= 2) counts.push_back(count);
  counts.push_back(context);
  return counts;
}

// Forms that no kernel of the stack runs in a phase, although the table prices them.
[[nodiscard]] std::vector<std::string> unserved_forms(const sim::Machine& machine, const ModelShape& model,
                                                      const EngineOptions& options) {
  std::vector<std::string> found;
  for (const auto& [form, name] : {std::pair{LatentForm::expand, "expanded"}, {LatentForm::absorb, "absorbed"}}) {
    EngineOptions both = options;
    both.prefill_latents = both.decode_latents = form;
    try {
      study::require_served(machine, model, both);
    } catch (const InputError& error) {
      found.push_back(std::string(name) + ": priced as if it were served; " + error.what());
    }
  }
  return found;
}

[[nodiscard]] present::Report latents_report(const StepChoices& choices) {
  const config::Scenario scenario = to_scenario(choices);
  const sim::Machine machine = study::resolve_machine(scenario, scenario.machines.front());
  const ModelShape model = study::resolve_part(scenario, study::resolve_model(scenario), machine);
  if (!model.has_latents() || model.has_compressed_entries())
    throw InputError("--model: " + model.name + " has no latent attention; deepseek-v3 has");
  const EngineOptions options = study::resolve_options(scenario, model, machine);
  const std::vector<int> counts = powers_up_to(choices.context);
  present::Report report{"dculab/tables-latents/1", {}, {present::Table{}}, present::Json::object()};
  report.heading = {model.name + " on " + machine.name + ": latent attention in one layer, " +
                    std::to_string(choices.batch) + " sequences of " + std::to_string(choices.context) + " tokens"};
  present::Table& table = report.tables.front();
  table.columns = {"new tokens each", "expanded", "absorbed", "cheaper"};
  table.first_column = present::Align::right;
  report.json = {{"model", model.name},
                 {"machine", machine.name},
                 {"batch", choices.batch},
                 {"context_tokens", choices.context},
                 {"rows", present::Json::array()}};
  present::add_warnings(report, model.notes);
  present::add_warnings(report, machine.stack.is_own() ? study::unserved(machine, model, options)
                                                       : unserved_forms(machine, model, options));
  for (const sim::LatentForms& row :
       sim::latent_forms(machine, model, options, choices.batch, choices.context, counts)) {
    const char* cheaper = row.cheaper() == LatentForm::absorb ? "absorbed" : "expanded";
    table.rows.push_back({std::to_string(row.new_tokens),
                          present::Cell(config::short_text(row.expanded), row.expanded.value()),
                          present::Cell(config::short_text(row.absorbed), row.absorbed.value()), cheaper});
    report.json["rows"].push_back({{"new_tokens", row.new_tokens},
                                   {"expanded_seconds", row.expanded.value()},
                                   {"absorbed_seconds", row.absorbed.value()},
                                   {"cheaper", cheaper}});
  }
  table.notes = {
      "Expanded: kv_b_proj for the whole context, attention of every head. Absorbed: its products for the new "
      "tokens,",
      "attention over latents. 1 new token is a decode, more are a chunk of a prefill."};
  return report;
}

}  // namespace

void add_latent_table(CLI::App& tables) {
  CLI::App* command = tables.add_subcommand("latents", "MLA: which of its two forms is cheaper, by new tokens");
  auto choices = std::make_shared<StepChoices>();
  auto output = std::make_shared<present::OutputOptions>();
  reads(command->add_option("--model", choices->model, "Folder with config.json, or a name under scenarios/models"),
        study::try_find_model)
      ->required();
  reads(command->add_option("--machine", choices->machine, "Name under hwmodels, or a file"), study::try_find_machine)
      ->required();
  add_stack_option(*command, choices->stack);
  command->add_option("--batch", choices->batch, "Sequences")->check(between(1, kLargestBatch));
  command->add_option("--context", choices->context, "Tokens of each, the new ones among them")
      ->check(between(2, kLongestContext));
  command->add_option("--set", choices->set, "key=value: any scenario key, e.g. deployment.tensor_parallel_size=8");
  add_output_options(*command, *output);
  command->callback([choices, output] { present::show(latents_report(*choices), *output); });
}

}  // namespace dculab::cli
