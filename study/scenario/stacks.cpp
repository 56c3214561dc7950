#include "study/scenario/stacks.hpp"

#include <algorithm>
#include <filesystem>
#include <map>

#include "config/stack_figure.hpp"
#include "config/stack_file.hpp"
#include "core/error.hpp"
#include "fields/near_words.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/resolve.hpp"

namespace dculab::study {
namespace {

[[nodiscard]] bool is_same_figure(const Node& a, const Node& b) { return a.key == b.key && a.text == b.text; }

// What runs on `machine`: its stack that `name` may mean, or all of them.
[[nodiscard]] std::string offered(std::span<const sim::Stack> stacks, const sim::Machine& machine,
                                  const std::string& name) {
  std::vector<std::string_view> words;
  std::string names;
  for (const sim::Stack& stack : stacks) {
    if (!sim::is_for(stack, machine)) continue;
    names += (names.empty() ? "" : ", ") + stack.name;
    words.insert(words.end(), {stack.name, stack.program});
  }
  const std::string guess = suggestion(name, words);
  return guess.empty() ? "offered for " + machine.name + ": " + names : guess;
}

[[nodiscard]] bool sweeps_stacks(const config::Scenario& scenario) {
  return std::ranges::any_of(
      scenario.sweep, [](const config::SweepAxis& axis) { return axis.key == "stack" || axis.key == "stack.name"; });
}

}  // namespace

std::vector<sim::Stack> shipped_stacks() {
  std::vector<sim::Stack> stacks;
  for (const std::filesystem::path& file : stack_files()) stacks.push_back(config::read_stack_file(file));
  return stacks;
}

const sim::Stack& choose_stack(std::span<const sim::Stack> stacks, const std::string& name,
                               const sim::Machine& machine) {
  bool is_known = false;
  const sim::Stack* chosen = nullptr;
  for (const sim::Stack& stack : stacks) {
    if (!same_word(stack.name, name) && !same_word(stack.program, name)) continue;
    is_known = true;
    if (!sim::is_for(stack, machine)) continue;
    if (same_word(stack.name, name)) return stack;
    if (chosen == nullptr || stack.age < chosen->age) chosen = &stack;
  }
  if (chosen != nullptr) return *chosen;
  const std::string refused = is_known ? "stack '" + name + "' is not for " + machine.name : "no stack '" + name + "'";
  throw InputError(refused + "; " + offered(stacks, machine, is_known ? "" : name));
}

sim::Stack resolve_stack(const std::string& name_or_file, const sim::Machine& machine) {
  if (const auto file = try_find_stack_file(name_or_file)) {
    sim::Stack stack = config::read_stack_file(*file);
    if (!sim::is_for(stack, machine))
      throw InputError(name_or_file, "stack " + stack.name + " is not for " + machine.name);
    return sim::stack_on(machine, std::move(stack));
  }
  return sim::stack_on(machine, choose_stack(shipped_stacks(), name_or_file, machine));
}

void put_stack(const config::Scenario& scenario, sim::Machine& machine) {
  if (scenario.stack != machine.stack.name) machine.stack = resolve_stack(scenario.stack, machine);
}

void apply_stack_figures(const config::Scenario& scenario, sim::Machine& machine) {
  config::ProblemList problems(scenario.file);
  config::set_stack_figures(machine, scenario.stack_figures, problems);
  problems.throw_if_any();
}

bool same_stack(const config::Scenario& one, const config::Scenario& other) {
  return one.stack == other.stack && std::ranges::equal(one.stack_figures, other.stack_figures, is_same_figure);
}

bool same_machine_figures(const config::Scenario& one, const config::Scenario& other) {
  return same_stack(one, other) && std::ranges::equal(one.machine_figures, other.machine_figures, is_same_figure);
}

std::vector<std::filesystem::path> stack_files_of(const std::string& name_or_file) {
  if (const auto file = try_find_stack_file(name_or_file)) return {*file};
  std::vector<std::filesystem::path> files;
  if (name_or_file == sim::Stack{}.name) return files;
  for (const std::filesystem::path& file : stack_files()) {
    const sim::Stack stack = config::read_stack_file(file);
    if (same_word(stack.name, name_or_file) || same_word(stack.program, name_or_file)) files.push_back(file);
  }
  return files;
}

std::vector<std::string> idle_reached(const sim::Machine& machine) {
  std::vector<std::string> idle;
  const auto is_called_so = [](const sim::Stack& stack, const std::string& section) {
    return same_word(stack.name, section) || same_word(stack.program, section);
  };
  for (const auto& [section, figures] : machine.reached)
    if (!same_word(section, std::string(sim::kAnyStack)) && !is_called_so(machine.stack, section))
      idle.push_back(section);
  if (machine.calibration)  // a calibration by points writes of kernel libraries, which stand in points alone
    std::erase_if(idle, [&](const std::string& section) { return machine.calibration->intervals.contains(section); });
  if (idle.empty()) return idle;
  for (const sim::Stack& stack : shipped_stacks())
    std::erase_if(idle, [&](const std::string& section) { return is_called_so(stack, section); });
  for (std::string& section : idle)
    section =
        "no shipped stack or program is called '" + section + "': the machine's reached." + section + " has no effect";
  return idle;
}

std::string whose_kernels(const sim::Machine& machine) {
  return "kernels of " + machine.stack.name + ": " + machine.stack.description;
}

std::vector<std::string> whose_kernels(const config::Scenario& scenario) {
  std::vector<std::string> lines;
  if (sweeps_stacks(scenario)) return lines;
  for (const std::string& name : scenario.machines) {
    if (name == "host") continue;
    std::string line = whose_kernels(resolve_machine(scenario, name));
    if (std::ranges::find(lines, line) == lines.end()) lines.push_back(std::move(line));
  }
  return lines;
}

std::string differing_stacks(const config::Scenario& scenario) {
  std::map<std::string, std::string> stacks;  // of each machine, in the order of their names
  if (!sweeps_stacks(scenario))
    for (const std::string& name : machines_of(scenario)) {
      if (name == "host") continue;
      const sim::Machine machine = resolve_machine(scenario, name);
      stacks.try_emplace(machine.name, machine.stack.name);
    }
  std::string text;
  bool differ = false;
  for (const auto& [machine, stack] : stacks) {
    differ = differ || stack != stacks.begin()->second;
    text += (text.empty() ? "" : ", ") + stack + " on " + machine;
  }
  return differ ? text : "";
}

}  // namespace dculab::study
