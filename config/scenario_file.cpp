#include "config/scenario_file.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

#include "config/compare_reader.hpp"
#include "config/file_kind.hpp"
#include "config/model_sizes.hpp"
#include "config/options_reader.hpp"
#include "config/scenario_document.hpp"
#include "config/scenario_reader.hpp"
#include "config/search_reader.hpp"
#include "config/sweep_reader.hpp"
#include "config/yaml_text.hpp"
#include "core/error.hpp"

namespace dculab::config {
namespace {

constexpr std::size_t kMostListedPoints = 100'000;

}  // namespace

std::string stack_beside(const std::string& scenario_file, const std::string& name_or_file) {
  if (!name_or_file.ends_with(".yaml")) return name_or_file;
  const std::filesystem::path beside = std::filesystem::path(scenario_file).parent_path() / name_or_file;
  std::error_code ignored;
  return std::filesystem::is_regular_file(beside, ignored) ? beside.string() : name_or_file;
}

Override parse_override(const std::string& argument) {
  const std::size_t equals = argument.find('=');
  const std::string key = argument.substr(0, equals);
  const bool dots = key.starts_with('.') || key.ends_with('.') || key.find("..") != std::string::npos;
  if (equals == std::string::npos || key.empty() || dots)
    throw InputError("--set " + argument, "must be key=value, for example kv_cache.block_size=32");
  return {key, argument.substr(equals + 1)};
}

void set_override(Node& document, const Override& change, const std::string& origin) {
  const auto& [key, text] = change;
  if (document.kind != NodeKind::map) return;  // the reader refuses it, with its file
  const Node value = parse_value(origin.empty() ? "--set " + key + "=" + text : origin, text);
  stop_sweeping(document, key);
  set_key(document, key, value);
}

Scenario read_scenario(const std::string& file, const Node& document) {
  require_kind(file, document, kScenarioSchema);
  ProblemList problems(file);
  Scenario scenario;
  read_sections(scenario, document, problems);
  // What is wrong with the base would be wrong at every point again.
  if (problems.empty()) read_sweep(scenario, document, problems);
  if (problems.empty()) read_compare(scenario, document, problems);
  if (problems.empty()) read_constraints(scenario, document, problems);
  problems.throw_if_any();
  scenario.file = file;
  scenario.stack = stack_beside(file, scenario.stack);
  scenario.document = document;
  return scenario;
}

Scenario read_scenario_file(const std::string& path, const std::vector<Override>& overrides) {
  Node document = read_yaml_file(path);
  for (const Override& change : overrides) set_override(document, change);
  return read_scenario(path, document);
}

Node axis_node(const std::string& file, const std::string& key, const std::string& value) {
  const std::string origin = file + ": sweep " + key + "=" + value;
  if (value.starts_with('{')) return parse_value(origin, value);  // a whole section
  Node node;
  node.kind = NodeKind::scalar;
  node.text = value;
  node.origin = origin;
  return node;
}

void apply_axis(Scenario& scenario, const std::string& key, const std::string& value) {
  Node document = scenario.document;
  stop_sweeping(document, key);
  set_key(document, key, axis_node(scenario.file, key, value));
  scenario = read_scenario(scenario.file, document);
}

Scenario with_changes(const Scenario& scenario, const Variant& variant) {
  Node document = scenario.document;
  for (const char* other : {"sweep", "compare", "accuracy", "constraints", "then"}) erase_key(document, other);
  for (const auto& [key, text] : variant.changes)
    set_key(document, key, parse_value(scenario.file + ": variant " + variant.name, text));
  return read_scenario(scenario.file, document);
}

bool is_at(const ReportedFigure& figure, const Scenario& point) {
  return std::all_of(figure.at.begin(), figure.at.end(), [&point](const Override& wanted) {
    const Node* node = find_key(point.document, wanted.first);
    return node != nullptr && node->text == wanted.second;
  });
}

std::vector<SweepPoint> sweep_points(const Scenario& scenario) {
  const std::uint64_t count = num_points(scenario.sweep);
  if (count > kMostListedPoints)
    throw InputError(scenario.file, "sweep: more than " + std::to_string(kMostListedPoints) + " points; remove values");
  const std::vector<std::size_t> order = setting_order(scenario.sweep);
  std::vector<SweepPoint> points;
  points.reserve(count);
  for (std::uint64_t index = 0; index < count; ++index) {
    SweepPoint& point = points.emplace_back();
    point.choices = choices_at(scenario.sweep, index);
    Node document = scenario.document;
    for (const char* other : {"sweep", "compare", "accuracy", "constraints"}) erase_key(document, other);
    for (const std::size_t axis : order) {
      const auto& [key, value] = point.choices[axis];
      set_key(document, key, axis_node(scenario.file, key, value));
    }
    point.scenario = read_scenario(scenario.file, document);
  }
  return points;
}

ModelShape resolve_model(ModelShape model, const ModelChoice& choice) {
  std::set<std::string> changed;
  const auto change = [&choice, &changed](std::string_view key, int& value) {
    const auto found = choice.overrides.find(std::string(key));
    if (found == choice.overrides.end()) return;
    value = found->second;
    changed.insert(found->first);
  };
  if (model.has_unequal_heads())
    for (const char* key : {"num_key_value_heads", "head_dim"})
      if (choice.overrides.contains(key))
        throw InputError(std::string("model.") + key + ": layers of " + model.name + " have heads that differ");
  int num_layers = model.num_layers();
  change(kLayersField, num_layers);
  visit_values<ModelSizes>(model, change);
  for (LayerKind& kind : model.kinds) {  // beside experts, intermediate_size is that of other layers
    if (!kind.experts) change("intermediate_size", kind.mlp.intermediate_size);
    if (kind.experts) visit_values<MixtureSizes>(*kind.experts, change);
    std::visit([&]<class Kind>(Kind& attention) { visit_values<AttentionSizes<Kind>>(attention, change); },
               kind.attention);
  }
  for (const auto& [key, value] : choice.overrides)
    if (!changed.contains(key)) throw InputError("model." + key + ": " + model.name + " has no such size");
  return with_layers(std::move(model), num_layers);
}

EngineOptions resolve_options(const Scenario& scenario, const ModelShape& model, EngineOptions defaults) {
  ProblemList problems(scenario.file);
  read_options(scenario.document, defaults, problems);
  problems.throw_if_any();
  defaults.weights = scenario.weights.value_or(model.layer_format());
  return defaults;
}

}  // namespace dculab::config
