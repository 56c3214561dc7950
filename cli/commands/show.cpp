// `dculab show`: every effective value of a machine, a stack, a model or a scenario, and where it came from.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>

#include "cli/commands/commands.hpp"
#include "cli/output_options.hpp"
#include "cli/scenario/file_options.hpp"
#include "config/machine_figure.hpp"
#include "config/machine_file.hpp"
#include "config/stack_file.hpp"
#include "config/unit_text.hpp"
#include "config/weight_format_text.hpp"
#include "config/yaml_text.hpp"
#include "core/error.hpp"
#include "model/folder/model_config.hpp"
#include "present/values/machine_figures.hpp"
#include "present/values/model_values.hpp"
#include "present/values/stack_values.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/stacks.hpp"

namespace dculab::cli {
namespace {

struct ShowChoices {
  std::string what;
  std::vector<std::string> set;
  present::OutputOptions output;
};

void add_value(present::Report& report, const std::string& key, const std::string& value, const std::string& kind,
               const std::string& source) {
  report.tables.front().rows.push_back({key, value, kind, source});
  report.json["values"].push_back({{"key", key}, {"value", value}, {"kind", kind}, {"source", source}});
}

[[nodiscard]] present::Report empty_report(std::string heading) {
  present::Report report{
      "dculab/show/1", {std::move(heading)}, {present::Table{}}, present::Json{{"values", present::Json::array()}}};
  report.tables.front().columns = {"key", "value", "kind", "source"};
  return report;
}

// "machine.clock=1550 MHz" as a scenario has it.
[[nodiscard]] Node figure_node(const std::string& change) {
  constexpr std::string_view kMachine = "machine.";
  const auto& [key, value] = config::parse_override(change);
  Node node;
  node.kind = NodeKind::scalar;
  node.key = key.substr(kMachine.size());
  node.text = value;
  node.origin = "--set " + change;
  return node;
}

[[nodiscard]] present::Report show_machine(const std::filesystem::path& file, const std::vector<std::string>& set) {
  present::Report report = empty_report("machine " + file.string());
  sim::Machine machine = config::read_machine_file(file);
  std::vector<Node> figures;
  for (const std::string& change : set) figures.push_back(figure_node(change));
  config::ProblemList problems(file.string());
  config::set_figures(machine, figures, problems);
  problems.throw_if_any();
  if (machine.redesign) report.heading.push_back(present::redesign_text(machine));
  for (const present::MachineFigure& figure : present::machine_figures(machine))
    add_value(report, figure.key, figure.value, figure.kind, figure.source);
  return report;
}

[[nodiscard]] present::Report show_stack(const std::filesystem::path& file) {
  const sim::Stack stack = config::read_stack_file(file);
  present::Report report = empty_report("stack " + file.string() + ": " + stack.description);
  for (const present::MachineFigure& value : present::stack_values(stack))
    add_value(report, value.key, value.value, value.kind, value.source);
  return report;
}

[[nodiscard]] present::Report show_model(const std::filesystem::path& folder) {
  present::Report report = empty_report("model " + folder.string());
  for (const present::MachineFigure& value : present::model_values(read_model_shape(folder)))
    add_value(report, value.key, value.value, value.kind, value.source);
  return report;
}

void add_document(present::Report& report, const Node& node, const std::string& path, const std::string& file) {
  for (const Node& child : node.children) {
    const std::string key = path.empty() ? child.key : child.key.empty() ? path + "[]" : path + "." + child.key;
    if (child.kind == NodeKind::scalar)
      add_value(report, key, child.text, "",
                child.origin.empty() ? file + ":" + std::to_string(child.place.line) : child.origin);
    else
      add_document(report, child, key, file);
  }
}

// On the first machine, by the stack that runs there.
[[nodiscard]] EngineOptions options_of(const config::Scenario& scenario, const ModelShape& model) {
  const std::string& name = scenario.machines.front();
  if (name == "host") return study::resolve_options(scenario, model, lower::DeviceKind::cpu);
  return study::resolve_options(scenario, model, study::resolve_machine(scenario, name));
}

void add_kernel_options(present::Report& report, const EngineOptions& options, const std::string& source) {
  const AttentionSplit& split = options.attention_split;
  const auto add = [&](const char* key, const std::string& value) { add_value(report, key, value, "", source); };
  add("engine.activation_dtype", std::string(name(options.activation_dtype)));
  add("attention.partition_tokens", std::to_string(split.partition_tokens));
  const int heads = split.query_heads_per_workgroup;
  add("attention.query_heads_per_workgroup", heads == 0 ? "group" : std::to_string(heads));
}

// What the file says, then the defaults it leaves in force.
[[nodiscard]] present::Report show_scenario(const std::filesystem::path& file, const std::vector<std::string>& set) {
  std::vector<config::Override> overrides;
  for (const std::string& change : set) overrides.push_back(config::parse_override(change));
  const config::Scenario scenario = config::read_scenario_file(file, overrides);
  present::Report report = empty_report("scenario " + file.string() + ": " + scenario.question);
  add_document(report, scenario.document, "", file.filename().string());
  const ModelShape model = study::resolve_model(scenario);
  const EngineOptions options = options_of(scenario, model);
  const auto add = [&](const char* key, const std::string& value) { add_value(report, key, value, "", "effective"); };
  add("model.num_key_value_heads", std::to_string(model.heads().num_key_value_heads));
  add("weights", config::weight_format_text(options.weights));
  add("kv_cache.block_size", std::to_string(options.block_size));
  add("kv_cache.dtype", std::string(name(options.kv_cache_dtype)));
  add("kv_cache.retention", std::string(name(options.kv_retention.policy)));
  add("kv_cache.skip", text_of(options.kv_skip));
  add("engine.enable_prefix_caching", options.enable_prefix_caching ? "true" : "false");
  if (options.enable_prefix_caching) add("engine.prefix_eviction", std::string(name(options.prefix_eviction)));
  add("engine.max_num_seqs", std::to_string(options.max_num_seqs));
  add("engine.max_num_batched_tokens", std::to_string(options.max_num_batched_tokens));
  const bool swaps = options.preemption_mode == PreemptionMode::swap;
  add("engine.preemption_mode", swaps ? "swap" : "recompute");
  if (swaps) add("engine.swap_space", config::short_text(options.swap_space));
  add_kernel_options(report, options, "effective on " + scenario.machines.front());
  return report;
}

void refuse_set(const ShowChoices& choices, const char* shown) {
  if (!choices.set.empty())
    throw InputError("--set",
                     "overrides keys of a scenario; '" + choices.what + "' is a " + shown +
                         (shown == std::string_view("machine") ? ", of which figures can be set: machine.clock=1550 MHz"
                                                               : ", which is shown as its file has it"));
}

[[nodiscard]] present::Report show_machine_with(const ShowChoices& choices, const std::filesystem::path& file) {
  const auto is_figure = [](const std::string& change) { return change.starts_with("machine."); };
  if (!std::ranges::all_of(choices.set, is_figure)) refuse_set(choices, "machine");
  return show_machine(file, choices.set);
}

[[nodiscard]] present::Report show_unchanged_model(const ShowChoices& choices, const std::filesystem::path& folder) {
  refuse_set(choices, "model");
  return show_model(folder);
}

[[nodiscard]] present::Report show_unchanged_stack(const ShowChoices& choices, const std::filesystem::path& file) {
  refuse_set(choices, "stack");
  return show_stack(file);
}

[[nodiscard]] std::optional<std::filesystem::path> try_find_shown(const std::string& name) {
  if (auto file = study::try_find_machine(name)) return file;
  if (auto file = study::try_find_stack(name)) return file;
  if (auto file = study::try_find_scenario(name)) return file;
  return study::try_find_model(name);
}

// A name may be a machine, a stack, a model or a scenario; a file says by its schema, a folder is a model.
[[nodiscard]] present::Report show_anything(const ShowChoices& choices) {
  if (std::filesystem::is_directory(choices.what))
    return show_unchanged_model(choices, study::find_model(choices.what));
  if (std::filesystem::is_regular_file(choices.what)) {
    const Node document = config::read_yaml_file(choices.what);
    const Node* schema = document.find("schema");
    if (schema != nullptr && schema->text == config::kScenarioSchema) return show_scenario(choices.what, choices.set);
    if (schema != nullptr && schema->text == config::kStackSchema) return show_unchanged_stack(choices, choices.what);
    return show_machine_with(choices, choices.what);
  }
  if (const auto file = study::try_find_machine(choices.what)) return show_machine_with(choices, *file);
  if (const auto file = study::try_find_stack(choices.what)) return show_unchanged_stack(choices, *file);
  if (const auto file = study::try_find_scenario(choices.what)) return show_scenario(*file, choices.set);
  if (const auto folder = study::try_find_model(choices.what)) return show_unchanged_model(choices, *folder);
  throw InputError("nothing is called '" + choices.what +
                   "': neither a file, a folder, nor a shipped machine, stack, model or scenario");
}

}  // namespace

void add_show(CLI::App& app) {
  CLI::App* command = app.add_subcommand("show", "Every effective value of a machine, stack, model or scenario");
  auto choices = std::make_shared<ShowChoices>();
  reads(command->add_option("what", choices->what,
                            "A file, a folder, or the name of a shipped machine, stack, model or scenario"),
        try_find_shown)
      ->required();
  command->add_option("--set", choices->set, "key=value: override a scenario's key")->option_text("KEY=VALUE ...");
  add_output_options(*command, choices->output);
  command->callback([choices] { present::show(show_anything(*choices), choices->output); });
}

}  // namespace dculab::cli
