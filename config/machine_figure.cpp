#include "config/machine_figure.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <vector>

#include "config/machine_fields.hpp"
#include "config/machine_file.hpp"
#include "fields/printable_text.hpp"
#include "sim/calibration/figure_scale.hpp"
#include "sim/hardware/design.hpp"
#include "sim/hardware/figure.hpp"

namespace dculab::config {
namespace {

constexpr std::string_view kTimes = " x", kClock = "clock";

// "1.2 x"
bool scale(sim::Machine& machine, MapReader& reader, const Node& node) {
  Node number = node;
  number.text.resize(number.text.size() - kTimes.size());
  double factor = 0;
  reader.read(number, factor, above(0));
  return factor == 0 || factor == 1 || sim::scale_figure(machine, node.key, factor);
}

// Where a scaled figure has come to. One that the machine does not state stays 0.
template <class T>
void check_scaled(MapReader& reader, const Node& node, const T& figure) {
  constexpr bool has_unit = requires { figure.value(); };
  std::optional<Dimension> dimension;
  double value = 0;
  if constexpr (has_unit) {
    dimension = DimensionOf<T>::value;
    value = figure.value();
  } else {
    value = figure;
  }
  if (const Range range = allowed_figure<T>(node.key); value != 0 && !contains(range, value))
    reader.complain(node, "machine." + node.key + ": '" + node.text + "' takes it out of range; it must be " +
                              describe(range, dimension));
}

// The clock that the file has, by the name that every file has for it.
[[nodiscard]] bool is_default_clock(const Node& figure) { return figure.key == kClock && figure.text == kDefaultClock; }

[[nodiscard]] bool is_word(const std::string& text) {
  return !text.empty() &&
         ((text.front() >= 'a' && text.front() <= 'z') || (text.front() >= 'A' && text.front() <= 'Z'));
}

void set_clock(sim::Machine& machine, MapReader& reader, const Node& node) {
  const auto state = machine.clock_states.find(node.text);
  if (state != machine.clock_states.end()) {
    machine.clock = state->second;
    return;
  }
  if (!is_word(node.text)) return reader.read(node, machine.clock, allowed_figure<Hertz>(node.key));
  std::string offered(kDefaultClock);
  for (const auto& [name, clock] : machine.clock_states) offered += ", " + name;
  reader.complain(node, "machine.clock: " + in_quotes(node.text) + " is no clock of " + machine.name + "; write " +
                            offered + ", or a frequency such as 1550 MHz");
}

// What may be done about a figure that the machine does not have.
[[nodiscard]] std::string way_out(const sim::Machine& machine, const std::string& key) {
  constexpr std::string_view kChannels = ".channels";
  const std::string level = key.substr(0, key.rfind('.'));
  if (key.ends_with(kChannels) && sim::figure_value(machine, level + ".size"))
    return ": it states no channels there; set machine." + level + ".bandwidth";
  return "; `dculab show` lists them";
}

void read_figure(sim::Machine& machine, MapReader& reader, const Node& node, const sim::Figure& figure) {
  const bool relative = node.text.ends_with(kTimes);
  if (relative && !scale(machine, reader, node))
    return reader.complain(node, "machine." + node.key + ": no figure of " + machine.name + " that can be scaled");
  const auto read = [&](auto* target) {
    if (relative)
      check_scaled(reader, node, *target);
    else
      reader.read(node, *target, allowed_figure<std::remove_pointer_t<decltype(target)>>(node.key));
  };
  if (node.key == kClock && !relative) return set_clock(machine, reader, node);
  std::visit(read, figure);
}

// A figure that is set keeps following, from where it is now.
void set_figure(sim::Machine& machine, MapReader& reader, const Node& node) {
  const std::optional<sim::Figure> figure = sim::find_figure(machine, node.key);
  if (!figure)
    return reader.complain(node, "machine." + node.key + ": no figure of " + machine.name + way_out(machine, node.key));
  const double before = *sim::figure_value(machine, node.key);
  read_figure(machine, reader, node, *figure);
  const double now = *sim::figure_value(machine, node.key);
  const bool moved = sim::is_driver(node.key) && now != before;
  if (moved && !node.text.ends_with(kTimes)) sim::follow(machine, node.key, before);  // scaling has done so
  if (const auto found = machine.derivations.find(node.key); found != machine.derivations.end() && before > 0)
    found->second = {found->second.follows, found->second.rate * now / before, true};
  cite(machine, node.key, sim::Evidence::assumed, "set by the scenario");
  if (node.key == kClock && machine.clock_states.contains(node.text)) {
    std::erase(machine.assumed, node.key);
    const std::string& source = machine.sources.at("clock_states." + node.text);
    if (source.starts_with("assumed")) machine.assumed.push_back(node.key);
    machine.sources[node.key] = source + "; the state " + node.text + ", set by the scenario";
  }
}

[[nodiscard]] bool has(const std::vector<std::string>& keys, const std::string& key) {
  return std::ranges::find(keys, key) != keys.end();
}

// "spec: card page" -> "spec: card page; follows clock, which the scenario sets"
void note_followers(sim::Machine& machine, sim::Redesign& redesign, const std::string& driver) {
  for (const std::string& key : sim::followers(machine, driver)) {
    if (has(redesign.set, key)) continue;
    if (!has(redesign.followed, key)) redesign.followed.push_back(key);
    machine.sources[key] += "; follows " + driver + ", which the scenario sets";
  }
}

void note_redesign(sim::Machine& machine, std::span<const Node> figures) {
  sim::Redesign redesign;
  for (const Node& figure : figures) redesign.set.push_back(figure.key);
  for (const std::string& key : redesign.set)
    if (sim::is_driver(key)) note_followers(machine, redesign, key);
  std::ranges::sort(redesign.followed);
  for (const auto& [key, source] : machine.sources) {
    const bool may_move =
        key.starts_with("peaks.") || key.starts_with("memory.") || key.find("matmul_") < key.find('.');
    if (may_move && !has(redesign.set, key) && !has(redesign.followed, key)) redesign.stayed.push_back(key);
  }
  machine.redesign = std::move(redesign);
}

}  // namespace

void set_figures(sim::Machine& machine, std::span<const Node> figures, ProblemList& problems) {
  std::vector<Node> changes;
  std::ranges::copy_if(figures, std::back_inserter(changes), std::not_fn(is_default_clock));
  if (changes.empty()) return;
  MapReader reader(nullptr, "machine", problems);
  // What figures follow before what follows, so that a figure that is set too has the last word.
  std::ranges::stable_partition(changes, sim::is_driver, &Node::key);
  for (const Node& change : changes) set_figure(machine, reader, change);
  if (!problems.empty()) return;
  note_redesign(machine, changes);
  for (const std::string& problem : sim::problems(machine)) problems.add(changes.front(), problem);
}

}  // namespace dculab::config
