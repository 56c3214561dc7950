#include "config/scenario_file.hpp"

#include <algorithm>

#include "config/compare_reader.hpp"
#include "config/model_fields.hpp"
#include "config/scenario_document.hpp"
#include "config/scenario_reader.hpp"
#include "core/error.hpp"

namespace dculab::config {
namespace {

constexpr std::size_t kMostPoints = 100'000;

// Tries every value of an axis alone, so that a bad one is reported with its place before anything is run.
void read_axis(const Node& axis, Scenario& scenario, const Node& base, ProblemList& problems) {
  if (axis.kind != NodeKind::list || axis.children.empty())
    return problems.add(axis, "sweep." + axis.key + ": must be a list such as [1, 8, 16]");
  SweepAxis& read = scenario.sweep.emplace_back();
  read.key = axis.key;
  for (Node value : axis.children) {
    value.key_place = axis.key_place;
    if (value.kind != NodeKind::scalar) {
      problems.add(value, "sweep." + axis.key + ": its values must be words or numbers");
      continue;
    }
    read.values.push_back(value.text);
    Node document = base;
    try {
      set_key(document, axis.key, std::move(value));
    } catch (const InputError&) {
      return problems.add(axis.key_place, axis.origin, "sweep." + axis.key + ": not a key of a scenario");
    }
    Scenario point;
    read_sections(point, document, problems);
  }
}

void read_sweep(Scenario& scenario, const Node& document, ProblemList& problems) {
  const Node* sweep = document.find("sweep");
  if (sweep == nullptr) return;
  MapReader reader(sweep, "sweep", problems);
  if (!reader.is_present()) return;
  Node base = document;
  for (const char* other : {"sweep", "compare", "accuracy"}) erase_key(base, other);
  for (const Node& axis : sweep->children)
    if (reader.optional(axis.key) == &axis) read_axis(axis, scenario, base, problems);
  reader.finish();
}

void add_points(std::vector<SweepPoint>& points, const SweepPoint& from, std::span<const SweepAxis> axes) {
  if (axes.empty()) return points.push_back(from);
  for (const std::string& value : axes.front().values) {
    SweepPoint point = from;
    apply_axis(point.scenario, axes.front().key, value);
    point.choices.emplace_back(axes.front().key, value);
    add_points(points, point, axes.subspan(1));
  }
}

}  // namespace

Override parse_override(const std::string& argument) {
  const std::size_t equals = argument.find('=');
  const std::string key = argument.substr(0, equals);
  const bool dots = key.starts_with('.') || key.ends_with('.') || key.find("..") != std::string::npos;
  if (equals == std::string::npos || key.empty() || dots)
    throw InputError("--set " + argument, "must be key=value, for example kv_cache.block_size=32");
  return {key, argument.substr(equals + 1)};
}

void set_override(Node& document, const Override& change) {
  const auto& [key, text] = change;
  if (document.kind != NodeKind::map) return;  // the reader refuses it, with its file
  const Node value = parse_value("--set " + key + "=" + text, text);
  stop_sweeping(document, key);
  set_key(document, key, value);
}

Scenario read_scenario(const std::string& file, const Node& document) {
  ProblemList problems(file);
  Scenario scenario;
  read_sections(scenario, document, problems);
  // What is wrong with the base would be wrong at every point again.
  if (problems.empty()) read_sweep(scenario, document, problems);
  if (problems.empty()) read_compare(scenario, document, problems);
  problems.throw_if_any();
  scenario.file = file;
  scenario.document = document;
  return scenario;
}

Scenario read_scenario_file(const std::string& path, const std::vector<Override>& overrides) {
  Node document = read_yaml_file(path);
  for (const Override& change : overrides) set_override(document, change);
  return read_scenario(path, document);
}

void apply_axis(Scenario& scenario, const std::string& key, const std::string& value) {
  Node node;
  node.kind = NodeKind::scalar;
  node.text = value;
  node.origin = scenario.file + ": sweep " + key + "=" + value;
  Node document = scenario.document;
  stop_sweeping(document, key);
  set_key(document, key, std::move(node));
  scenario = read_scenario(scenario.file, document);
}

Scenario with_changes(const Scenario& scenario, const Variant& variant) {
  Node document = scenario.document;
  for (const char* other : {"sweep", "compare", "accuracy", "then"}) erase_key(document, other);
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
  std::size_t count = 1;
  for (const SweepAxis& axis : scenario.sweep) {
    count *= axis.values.size();
    if (count > kMostPoints)
      throw InputError(scenario.file, "sweep: more than " + std::to_string(kMostPoints) + " points; remove values");
  }
  SweepPoint start{{}, scenario};
  start.scenario.sweep.clear();
  start.scenario.compare.reset();
  start.scenario.accuracy.reset();
  for (const char* other : {"sweep", "compare", "accuracy"}) erase_key(start.scenario.document, other);
  std::vector<SweepPoint> points;
  points.reserve(count);
  add_points(points, start, scenario.sweep);
  return points;
}

ModelShape resolve_model(ModelShape model, const ModelChoice& choice) {
  for (const auto& [key, member] : kModelFields)
    if (const auto change = choice.overrides.find(std::string(key)); change != choice.overrides.end())
      model.*member = change->second;
  return model;
}

EngineOptions resolve_options(const Scenario& scenario, const ModelShape& model, EngineOptions defaults) {
  ProblemList problems(scenario.file);
  read_options(scenario.document, defaults, problems);
  problems.throw_if_any();
  defaults.weights = scenario.weights.value_or(model.layer_format());
  return defaults;
}

}  // namespace dculab::config
