#include "config/machine_figure.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <vector>

#include "config/figure_change.hpp"
#include "config/machine_file.hpp"
#include "fields/printable_text.hpp"
#include "sim/hardware/design.hpp"
#include "sim/hardware/device_link.hpp"
#include "sim/hardware/figure.hpp"

namespace dculab::config {
namespace {

constexpr std::string_view kClock = "clock";

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
  if (!is_word(node.text)) return reader.read(node, machine.clock, sim::find_figure_info(node.key)->bounds);
  std::string offered(kDefaultClock);
  for (const auto& [name, clock] : machine.clock_states) offered += ", " + name;
  reader.complain(node, "machine.clock: " + in_quotes(node.text) + " is no clock of " + machine.name + "; write " +
                            offered + ", or a frequency such as 1550 MHz");
}

// Where what a stack has is set; "" for any other key.
[[nodiscard]] std::string of_a_stack(const std::string& key) {
  constexpr std::string_view kOldSection = "efficiencies.", kSection = "reached.";
  if (key.starts_with(sim::kOfStack)) return "a figure of the stack; set " + key;
  if (!key.starts_with(kOldSection) && !key.starts_with(kSection)) return {};
  const std::string figure = key.substr(key.rfind('.') + 1);
  const bool is_sustained = sim::find_figure_info("sustained." + figure) != nullptr;
  return is_sustained ? "is machine.sustained." + figure + " now"
                      : "what kernels reach is their stack's; set stack.reached." + figure;
}

// And what may be done about it.
[[nodiscard]] std::string why_unknown(const sim::Machine& machine, const std::string& key) {
  constexpr std::string_view kChannels = ".channels";
  if (std::string moved = of_a_stack(key); !moved.empty()) return moved;
  const std::string level = key.substr(0, key.rfind('.')), none = "no figure of " + machine.name;
  if (key.ends_with(kChannels) && sim::figure_value(machine, level + ".size"))
    return none + ": it states no channels there; set machine." + level + ".bandwidth";
  return none + "; `dculab show` lists them";
}

[[nodiscard]] bool has(const std::vector<std::string>& keys, const std::string& key) {
  return std::ranges::find(keys, key) != keys.end();
}

// A figure that is set keeps following, from where it is now.
void set_figure(sim::Machine& machine, MapReader& reader, const Node& node) {
  const bool may_have_links = machine.kind == lower::DeviceKind::gpu;
  const bool begins = !is_relative(node) &&
                      (sim::begin_cost(machine, node.key) || (may_have_links && sim::begin_link(machine, node.key)));
  if (node.key.starts_with(sim::kOfStack) || (!begins && !sim::find_figure(machine, node.key)))
    return reader.complain(node, "machine." + node.key + ": " + why_unknown(machine, node.key));
  const double before = *sim::figure_value(machine, node.key);
  if (node.key == kClock && !is_relative(node))
    set_clock(machine, reader, node);
  else
    change_figure(machine, node.key, reader, node);
  const double now = *sim::figure_value(machine, node.key);
  const bool moved = sim::is_driver(node.key) && now != before;
  if (moved && !is_relative(node)) sim::follow(machine, node.key, before);  // scaling has done so
  if (const auto found = machine.derivations.find(node.key); found != machine.derivations.end() && before > 0)
    found->second = {found->second.follows, found->second.rate * now / before, true};
  cite(machine, node.key, sim::Evidence::assumed, "set by the scenario");
  if (node.key == kClock && machine.clock_states.contains(node.text)) {
    const std::string state = "clock_states." + node.text;
    std::erase(machine.assumed, node.key);
    if (has(machine.assumed, state)) machine.assumed.push_back(node.key);
    machine.sources[node.key] = machine.sources.at(state) + "; the state " + node.text + ", set by the scenario";
  }
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
  std::stable_partition(changes.begin(), changes.end(), [](const Node& change) { return sim::is_driver(change.key); });
  for (const Node& change : changes) set_figure(machine, reader, change);
  if (!problems.empty()) return;
  note_redesign(machine, changes);
  for (const std::string& problem : sim::problems(machine)) problems.add(changes.front(), problem);
}

}  // namespace dculab::config
