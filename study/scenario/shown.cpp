#include "study/scenario/shown.hpp"

#include <algorithm>
#include <string_view>

#include "config/machine_figure.hpp"
#include "config/machine_file.hpp"
#include "config/stack_file.hpp"
#include "config/yaml_text.hpp"
#include "core/error.hpp"
#include "fields/near_words.hpp"
#include "files/input.hpp"
#include "model/folder/model_config.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/stacks.hpp"

namespace dculab::study {
namespace {

// What was asked for.
struct ShowChoices {
  const std::string& what;
  const std::vector<std::string>& set;
};

void refuse_set(const ShowChoices& choices, const char* shown) {
  if (!choices.set.empty())
    throw InputError("--set",
                     "overrides keys of a scenario; '" + choices.what + "' is a " + shown +
                         (shown == std::string_view("machine") ? ", of which figures can be set: machine.clock=1550 MHz"
                                                               : ", which is shown as its file has it"));
}

// "machine.clock=1550 MHz" as a scenario has it.
[[nodiscard]] Node figure_node(const std::string& change) {
  constexpr std::string_view kMachineKeys = "machine.";
  const auto& [key, value] = config::parse_override(change);
  Node node;
  node.kind = NodeKind::scalar;
  node.key = key.substr(kMachineKeys.size());
  node.text = value;
  node.origin = "--set " + change;
  return node;
}

[[nodiscard]] ShownMachine shown_machine(const ShowChoices& choices, const std::filesystem::path& file) {
  const auto is_figure = [](const std::string& change) { return change.starts_with("machine."); };
  if (!std::ranges::all_of(choices.set, is_figure)) refuse_set(choices, "machine");
  ShownMachine shown{file, config::read_machine_file(file)};
  std::vector<Node> figures;
  for (const std::string& change : choices.set) figures.push_back(figure_node(change));
  config::ProblemList problems(file.string());
  config::set_figures(shown.machine, figures, problems);
  problems.throw_if_any();
  return shown;
}

[[nodiscard]] ShownStack shown_stack(const ShowChoices& choices, const std::filesystem::path& file) {
  refuse_set(choices, "stack");
  return {file, config::read_stack_file(file)};
}

[[nodiscard]] ShownModel shown_model(const ShowChoices& choices, const std::filesystem::path& folder) {
  refuse_set(choices, "model");
  return {folder, read_model_shape(folder)};
}

// On the first machine, by the stack that runs there.
[[nodiscard]] EngineOptions options_on_first(const config::Scenario& scenario, const ModelShape& model) {
  const std::string& name = scenario.machines.front();
  if (name == "host") return resolve_options(scenario, model, lower::DeviceKind::cpu);
  return resolve_options(scenario, model, resolve_machine(scenario, name));
}

[[nodiscard]] ShownScenario shown_scenario(const ShowChoices& choices, const std::filesystem::path& file) {
  std::vector<config::Override> overrides;
  for (const std::string& change : choices.set) overrides.push_back(config::parse_override(change));
  ShownScenario shown{
      .file = file, .scenario = config::read_scenario_file(file, overrides), .model = {}, .options = {}};
  shown.model = resolve_model(shown.scenario);
  shown.options = options_on_first(shown.scenario, shown.model);
  return shown;
}

[[nodiscard]] Shown shown_file(const ShowChoices& choices) {
  const Node document = config::read_yaml_file(choices.what);
  const Node* schema = document.find("schema");
  if (schema != nullptr && schema->text == config::kScenarioSchema) return shown_scenario(choices, choices.what);
  if (schema != nullptr && schema->text == config::kStackSchema) return shown_stack(choices, choices.what);
  return shown_machine(choices, choices.what);
}

// "; did you mean 'k100-ai'?", of everything that is shipped.
[[nodiscard]] std::string that_may_be_meant(const std::string& what) {
  std::vector<std::string> names = machine_names();
  for (const auto& more : {stack_names(), model_names(), scenario_names()})
    names.insert(names.end(), more.begin(), more.end());
  const std::string guess = suggestion(what, names);
  return "; " + (guess.empty() ? "`dculab list` has all names" : guess);
}

}  // namespace

std::optional<std::filesystem::path> try_find_shown(const std::string& name) {
  if (auto file = try_find_machine(name)) return file;
  if (auto file = try_find_stack(name)) return file;
  if (auto file = try_find_scenario(name)) return file;
  return try_find_model(name);
}

Shown find_shown(const std::string& what, const std::vector<std::string>& set) {
  const ShowChoices choices{what, set};
  if (std::filesystem::is_directory(what)) return shown_model(choices, find_model(what));
  if (std::filesystem::is_regular_file(what) || files::is_handed_over(what)) {
    if (const auto model = try_find_model(what)) return shown_model(choices, *model);
    return shown_file(choices);
  }
  if (const auto file = try_find_machine(what)) return shown_machine(choices, *file);
  if (const auto file = try_find_stack(what)) return shown_stack(choices, *file);
  if (const auto file = try_find_scenario(what)) return shown_scenario(choices, *file);
  if (const auto folder = try_find_model(what)) return shown_model(choices, *folder);
  std::string stacks;
  for (const std::filesystem::path& file : stack_files_of(what))
    stacks += (stacks.empty() ? "" : ", ") + file.stem().string();
  if (!stacks.empty()) throw InputError("'" + what + "' is a program; show one of its stacks: " + stacks);
  throw InputError("nothing is called '" + what +
                   "': neither a file, a folder, nor a shipped machine, stack, model or scenario" +
                   that_may_be_meant(what));
}

}  // namespace dculab::study
