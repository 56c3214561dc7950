#include "config/scenario_file.hpp"

#include <algorithm>

#include "config/model_fields.hpp"
#include "config/scenario_reader.hpp"
#include "core/error.hpp"

namespace dculab::config {
namespace {

constexpr std::size_t kMostPoints = 100'000;
constexpr std::string_view kSweepPrefix = "sweep.";

void erase_key(Node& map, std::string_view key) {
  std::erase_if(map.children, [key](const Node& child) { return child.key == key; });
}

// The parts of a dotted key; after "sweep." the rest is one key.
std::vector<std::string> split_key(const std::string& key) {
  if (key.starts_with(kSweepPrefix)) return {"sweep", key.substr(kSweepPrefix.size())};
  std::vector<std::string> parts(1);
  for (const char letter : key) {
    if (letter == '.')
      parts.emplace_back();
    else
      parts.back() += letter;
  }
  return parts;
}

// The child under `part`, which becomes a map if it is not one yet.
Node& enter(Node& map, const std::string& part, const Node& value) {
  Node* child = map.find(part);
  if (child == nullptr) {
    child = &map.children.emplace_back();
    child->kind = NodeKind::map;
    child->key = part;
    child->place = child->key_place = value.key_place;
    child->origin = value.origin;
  } else if (part == "model" && child->kind == NodeKind::scalar) {
    Node name = *child;
    name.key = "name";
    child->kind = NodeKind::map;
    child->children = {std::move(name)};
  }
  return *child;
}

void set_node(Node& document, const std::string& key, Node value) {
  const std::vector<std::string> parts = split_key(key);
  Node* map = &document;
  for (std::size_t index = 0; index + 1 < parts.size() && map->kind == NodeKind::map; ++index)
    map = &enter(*map, parts[index], value);
  if (map->kind != NodeKind::map) throw InputError(value.origin, key + ": what it belongs to has no keys");
  Node* target = map->find(parts.back());
  // Another model keeps the changes to its shape.
  if (key == "model" && value.kind == NodeKind::scalar && target != nullptr && target->kind == NodeKind::map)
    return set_node(document, "model.name", std::move(value));
  value.key = parts.back();
  if (key == "machine") erase_key(document, "machines");
  if (target != nullptr)
    *target = std::move(value);
  else
    map->children.push_back(std::move(value));
}

void stop_sweeping(Node& document, const std::string& key) {
  Node* sweep = document.find("sweep");
  if (sweep == nullptr) return;
  erase_key(*sweep, key);
  if (sweep->kind == NodeKind::map && sweep->children.empty()) erase_key(document, "sweep");
}

Node parse_value(const std::string& origin, const std::string& text) {
  Node value = parse_yaml(origin, text);
  value.place = {};
  value.origin = origin;
  for (Node& child : value.children) {
    child.place = child.key_place = {};
    child.origin = origin;
  }
  return value;
}

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
      set_node(document, axis.key, std::move(value));
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
  erase_key(base, "sweep");
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
  set_node(document, key, value);
}

Scenario read_scenario(const std::string& file, const Node& document) {
  ProblemList problems(file);
  Scenario scenario;
  read_sections(scenario, document, problems);
  // What is wrong with the base would be wrong at every point again.
  if (problems.empty()) read_sweep(scenario, document, problems);
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
  set_node(document, key, std::move(node));
  scenario = read_scenario(scenario.file, document);
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
  erase_key(start.scenario.document, "sweep");
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
  defaults.weights = scenario.weights.value_or(WeightFormat{model.dtype, 0});
  return defaults;
}

}  // namespace dculab::config
