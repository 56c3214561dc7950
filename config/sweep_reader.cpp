#include "config/sweep_reader.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "config/key_description.hpp"
#include "config/scenario_document.hpp"
#include "config/scenario_reader.hpp"
#include "fields/printable_text.hpp"

namespace dculab::config {
namespace {

constexpr double kMostValues = 100'000;  // of a spaced axis
constexpr double kMostSamples = 1e12;
constexpr double kMostPoints = 1e12;
constexpr std::size_t kMostTried = 256;
constexpr const char* kExamples = "a list such as [1, 8, 16], or a map such as {from: 1, to: 256, factor: 2}";

constexpr auto kScales = std::to_array<Choice<Scale>>({{"linear", Scale::linear}, {"log", Scale::log}});

// How values follow from the ends of a range.
struct Spacing {
  Scale scale = Scale::linear;
  double step = 0, factor = 0;
  int points = 0;
  std::int64_t samples = 1, seed = 1;
};

struct AxisKeys {
  using Target = Spacing;
  static constexpr auto keys =
      std::tuple(word("scale", &Spacing::scale, kScales, "of `points` and `samples`"),
                 value("step", &Spacing::step, "equal steps", {.bounds = above(0), .absent = "another of these"}),
                 value("factor", &Spacing::factor, "equal factors",
                       {.bounds = above(1), .unit = unit::ratio, .absent = "another of these"}),
                 value("points", &Spacing::points, "this number of points, evenly on the scale",
                       {.bounds = between(2, kMostValues), .unit = unit::count, .absent = "another of these"}),
                 value("samples", &Spacing::samples, "this number of random values, uniform on the scale",
                       {.bounds = between(1, kMostSamples), .unit = unit::count, .absent = "another of these"}),
                 value("seed", &Spacing::seed, "of `samples`", {.bounds = between(0, 0x1p53)}));
};

// "512 GB/s": the number, and what follows it.
std::pair<double, std::string> read_number(MapReader& reader, const Node& node) {
  const std::string& text = node.text;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  unit.erase(0, unit.find_first_not_of(' '));
  if (node.kind != NodeKind::scalar || error != std::errc() || !std::isfinite(number))
    reader.complain(node, reader.path_to(node.key) + ": must be a number, with a unit where the key has one");
  return {number, unit};
}

[[nodiscard]] bool is_whole(const Node* node) {
  return node == nullptr || node->text.find_first_not_of("-0123456789") == std::string::npos;
}

void read_range(MapReader& reader, const Node& from, const Node* to, NumberRange& range) {
  std::tie(range.low, range.unit) = read_number(reader, from);
  if (to == nullptr) return;
  std::string unit;
  std::tie(range.high, unit) = read_number(reader, *to);
  Spacing spacing;
  read_key<AxisKeys>(reader, "scale", spacing);
  range.scale = spacing.scale;
  range.whole = is_whole(&from) && is_whole(to) && is_whole(reader.optional("step"));
  if (unit != range.unit)
    reader.complain(*to, reader.path_to("to") + ": needs the unit of from, " + in_quotes(range.unit));
  else if (range.high < range.low)
    reader.complain(*to, reader.path_to("to") + ": must not be below from");
  if (range.scale == Scale::log && range.low <= 0)
    reader.complain(from, reader.path_to("from") + ": a logarithmic scale begins above 0");
}

// Spaced by one of step, factor and points; the last value does not pass `to`.
std::vector<double> spaced(MapReader& reader, const NumberRange& range) {
  constexpr double kSlack = 1 + 1e-9;  // 0.1 + 0.1 + 0.1 reaches 0.3
  Spacing spacing;
  for (const std::string_view key : {"step", "factor", "points"}) read_key<AxisKeys>(reader, key, spacing);
  const auto& [scale, step, factor, points, samples, seed] = spacing;
  std::vector<double> values;
  const double width = range.high - range.low;
  if (step > 0 && width / step < kMostValues)
    for (int i = 0; i * step <= width * kSlack; ++i) values.push_back(range.low + i * step);
  if (factor > 1 && range.low > 0 && std::log(range.high / range.low) / std::log(factor) < kMostValues)
    for (int i = 0; std::pow(factor, i) <= range.high / range.low * kSlack; ++i)
      values.push_back(range.low * std::pow(factor, i));
  for (int i = 0; i < points; ++i) {
    const double share = i / (points - 1.0);
    values.push_back(range.scale == Scale::log ? range.low * std::pow(range.high / range.low, share)
                                               : range.low + share * width);
  }
  return values;
}

void read_spaced(MapReader& reader, const NumberRange& range, SweepAxis& axis) {
  const auto has = [&reader](const char* key) { return reader.node()->find(key) != nullptr ? 1 : 0; };
  if (has("step") + has("factor") + has("points") != 1)
    return reader.complain(*reader.node(), reader.path() + " needs one of step, factor, points and samples");
  if (has("factor") == 1 && range.low <= 0)
    return reader.complain(*reader.node(), reader.path_to("factor") + ": needs a from above 0");
  for (const double value : spaced(reader, range)) {
    std::string text = number_text(range, range.whole ? std::round(value) : value);
    if (axis.values.empty() || axis.values.back() != text) axis.values.push_back(std::move(text));
  }
  if (axis.values.empty()) reader.complain(*reader.node(), reader.path() + " has more than 100 000 values");
}

void read_draws(MapReader& reader, SweepAxis& axis) {
  Spacing drawn;
  for (const std::string_view key : {"samples", "seed"}) read_key<AxisKeys>(reader, key, drawn);
  axis.draws = Draws{static_cast<std::uint64_t>(drawn.samples), static_cast<std::uint64_t>(drawn.seed), {}};
}

// {from: 1, to: 256, factor: 2}, {from: 1, to: 8192, samples: 1000, scale: log}, {values: [f16, int8], samples: 1000}
void read_generated(const Node& node, SweepAxis& axis, ProblemList& problems) {
  MapReader reader(&node, "sweep." + axis.key, problems);
  const Node* from = reader.optional("from");
  const Node* values = reader.optional("values");
  const Node* samples = reader.optional("samples");
  if ((from == nullptr) == (values == nullptr)) {
    reader.complain(node, "sweep." + axis.key + ": needs either from and to, or values");
  } else if (values != nullptr) {
    reader.read(*values, axis.values);
    if (samples == nullptr)
      reader.complain(node, "sweep." + axis.key + ": values that are not drawn make a plain list");
    if (samples != nullptr) read_draws(reader, axis);
  } else {
    NumberRange range;
    read_range(reader, *from, reader.required("to"), range);
    if (samples != nullptr) {
      read_draws(reader, axis);
      axis.draws->range = range;
    } else if (problems.empty()) {
      read_spaced(reader, range, axis);
    }
  }
  reader.finish();
}

// In quotes where YAML would read it as anything but a word or a number.
[[nodiscard]] std::string flow_scalar(const std::string& text) {
  if (!text.empty() && text.find_first_of(",:{}[]#&*!|>'\"%@`\\") == std::string::npos) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("''") : std::string(1, c);
  return quoted + "'";
}

// "{tensor_parallel_size: 4, routing: random}"
std::string flow_text(const Node& node, bool inside = false) {
  if (node.kind == NodeKind::scalar) return inside ? flow_scalar(node.text) : node.text;
  std::string text;
  for (const Node& child : node.children)
    text += (text.empty() ? "" : ", ") + child.key + ": " + flow_text(child, true);
  return "{" + text + "}";
}

[[nodiscard]] bool holds_list(const Node& node) {
  return node.kind == NodeKind::list || std::ranges::any_of(node.children, holds_list);
}

// Nothing of an axis whose values are neither words, numbers nor maps that stand for a whole section.
void read_listed(const Node& node, SweepAxis& axis, ProblemList& problems) {
  if (node.children.empty()) problems.add(node, "sweep." + axis.key + ": must be " + kExamples);
  const bool is_named = axis.key == "model" || axis.key == "machine" || axis.key == "stack";
  for (const Node& value : node.children) {
    if (holds_list(value) || (is_named && value.kind == NodeKind::map))
      problems.add(value, "sweep." + axis.key + ": its values must be words or numbers" +
                              (is_named ? "" : ", or maps such as {tensor_parallel_size: 4, data_parallel_size: 2}"));
    else
      axis.values.push_back(flow_text(value));
  }
}

// False when the key is none of a scenario.
[[nodiscard]] bool try_value(const SweepAxis& axis, Node value, const Node& base, ProblemList& problems) {
  Node document = base;
  try {
    set_key(document, axis.key, std::move(value));
  } catch (const InputError&) {
    return false;
  }
  Scenario point;
  read_sections(point, document, problems);
  return true;
}

void try_values(const Node& node, const SweepAxis& axis, const Node& base, ProblemList& problems) {
  std::vector<std::string> tried = axis.values;
  if (axis.draws && axis.draws->range)
    tried = {number_text(*axis.draws->range, axis.draws->range->low),
             number_text(*axis.draws->range, axis.draws->range->high)};
  const bool listed = node.kind == NodeKind::list;
  if (!listed && tried.size() > kMostTried) tried = {tried.front(), tried.back()};
  for (std::size_t index = 0; index < tried.size(); ++index) {
    Node value = listed ? node.children[index] : node;
    if (!listed || value.kind != NodeKind::map) {
      value.kind = NodeKind::scalar;
      value.children.clear();
      value.text = tried[index];
    }
    value.key_place = node.key_place;
    if (!try_value(axis, std::move(value), base, problems))
      return problems.add(node.key_place, node.origin, "sweep." + axis.key + ": not a key of a scenario");
  }
}

void read_axis(const Node& node, Scenario& scenario, const Node& base, ProblemList& problems) {
  if (node.kind != NodeKind::list && node.kind != NodeKind::map)
    return problems.add(node, "sweep." + node.key + ": must be " + kExamples);
  SweepAxis axis;
  axis.key = node.key;
  ProblemList found(problems);
  found.clear();
  if (node.kind == NodeKind::list)
    read_listed(node, axis, found);
  else
    read_generated(node, axis, found);
  if (found.empty()) try_values(node, axis, base, found);
  problems.add(found);
  scenario.sweep.push_back(std::move(axis));
}

void check_sweep(const Node& sweep, const Scenario& scenario, ProblemList& problems) {
  const SweepAxis* first = nullptr;
  for (const SweepAxis& axis : scenario.sweep) {
    if (!axis.draws) continue;
    if (first != nullptr && axis.size() != first->size())
      problems.add(*sweep.find(axis.key), "sweep." + axis.key + ".samples: must be those of " + first->key +
                                              ", for axes that are drawn are drawn together");
    if (first == nullptr) first = &axis;
  }
  if (problems.empty() && static_cast<double>(num_points(scenario.sweep)) > kMostPoints)
    problems.add(sweep, "sweep: more than 10^12 points; remove values");
}

}  // namespace

void read_sweep(Scenario& scenario, const Node& document, ProblemList& problems) {
  const Node* sweep = document.find("sweep");
  if (sweep == nullptr) return;
  MapReader reader(sweep, "sweep", problems);
  if (!reader.is_present()) return;
  Node base = document;
  for (const char* other : {"sweep", "compare", "accuracy", "constraints"}) erase_key(base, other);
  for (const Node& axis : sweep->children)
    if (reader.optional(axis.key) == &axis) read_axis(axis, scenario, base, problems);
  reader.finish();
  if (problems.empty()) check_sweep(*sweep, scenario, problems);
}

std::vector<FileKey> axis_keys() {
  std::vector<FileKey> keys = keys_of<AxisKeys>();
  for (const auto& [key, meaning] : {std::pair{"from", "the first value, with the key's unit or ` x`"},
                                     {"to", "the last value, if the steps reach it"}}) {
    FileKey& end = keys.emplace_back(FileKey{.key = key, .meaning = meaning});
    end.values = {any_scalar()};
    end.absent = "`values`";
  }
  FileKey& values = keys.emplace_back(FileKey{.key = "values", .meaning = "that `samples` are drawn from"});
  values.values = {{.kind = ValueKind::list, .items = {any_scalar()}}};
  values.absent = "`from` and `to`";
  return keys;
}

}  // namespace dculab::config
