#include "config/stack_figure.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "config/figure_change.hpp"
#include "config/kernel_parameters.hpp"
#include "fields/near_words.hpp"
#include "sim/hardware/figure.hpp"

namespace dculab::config {
namespace {

constexpr const char* kSource = "assumed: set by the scenario";

[[nodiscard]] std::vector<std::string_view> offered_figures() {
  std::vector<std::string_view> keys;
  for (const std::string& key : sim::stack_figures())
    keys.push_back(std::string_view(key).substr(sim::kOfStack.size()));
  std::ranges::sort(keys);
  return keys;
}

void refuse_unknown(MapReader& reader, const Node& change) {
  const std::vector<std::string_view> offered = offered_figures();
  std::string known;
  for (const std::string_view key : offered) known.append(known.empty() ? "" : ", ").append(key);
  const std::string guess = suggestion(change.key, offered);
  known += ", parameters.KERNEL.NAME";
  reader.complain(
      change, reader.path_to(change.key) + ": no figure of a stack; " + (guess.empty() ? "known are " + known : guess));
}

// What a stack leaves to the machine begins where the machine has it.
void begin_at_machine(sim::Machine& machine, std::string_view key) {
  sim::Stack& stack = machine.stack;
  if (key == "host.per_step" && !stack.host_per_step) stack.host_per_step = machine.overheads.host_per_step;
  if (key == "host.per_sequence" && !stack.host_per_sequence)
    stack.host_per_sequence = machine.overheads.host_per_sequence;
}

}  // namespace

void set_stack_figures(sim::Machine& machine, std::span<const Node> figures, ProblemList& problems) {
  MapReader reader(nullptr, "stack", problems);
  for (const Node& change : figures) {
    if (change.key.starts_with("parameters.")) {
      set_parameter(machine.stack, reader, change);
      continue;
    }
    begin_at_machine(machine, change.key);
    const std::string key = std::string(sim::kOfStack) + change.key;
    if (!sim::find_figure(machine, key)) {
      refuse_unknown(reader, change);
      continue;
    }
    change_figure(machine, key, reader, change);
    machine.stack.sources[change.key] = kSource;
  }
}

}  // namespace dculab::config
