#include "sim/hardware/reached.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

#include "sim/hardware/machine.hpp"
#include "sim/hardware/stack_fields.hpp"

namespace dculab::sim {
namespace {

constexpr std::string_view kSection = "reached.";

// Names are the same in any case, as on the command line.
[[nodiscard]] bool is_called(const std::string& section, std::string_view name) {
  return std::ranges::equal(section, name,
                            [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); });
}

// What the machine's section states.
void take_stated(const Machine& machine, const std::string& section, const Reached& figures, Stack& stack) {
  for (const FigureField<Reached>& field : kReached) {
    const std::string key(field.info.key);
    const auto source = machine.sources.find(std::string(kSection).append(section).append(".").append(key));
    if (source == machine.sources.end()) continue;
    std::visit([&](auto member) { stack.reached.*member = figures.*member; }, field.member);
    stack.sources[std::string(kSection).append(key)] = source->second;
  }
}

void take_section(const Machine& machine, std::string_view name, Stack& stack) {
  for (const auto& [section, figures] : machine.reached)
    if (is_called(section, name)) take_stated(machine, section, figures, stack);
}

}  // namespace

Stack stack_on(const Machine& machine, Stack stack) {
  const Stack file = stack;
  take_section(machine, kAnyStack, stack);
  for (const FigureField<Reached>& field : kReached) {
    const std::string key = std::string(kSection).append(field.info.key);
    const auto stated = file.sources.find(key);
    if (stated == file.sources.end()) continue;
    std::visit([&](auto member) { stack.reached.*member = file.reached.*member; }, field.member);
    stack.sources[key] = stated->second;
  }
  take_section(machine, file.program, stack);
  take_section(machine, file.name, stack);
  return stack;
}

std::string keep_reached(Machine& machine, std::string_view key, const std::string& source) {
  Stack& stack = machine.stack;
  for (const FigureField<Reached>& field : kReached)
    if (field.info.key == key)
      std::visit([&](auto member) { machine.reached[stack.name].*member = stack.reached.*member; }, field.member);
  stack.sources[std::string(kSection).append(key)] = source;
  std::string of_machine = std::string(kSection).append(stack.name).append(".").append(key);
  machine.sources[of_machine] = source;
  return of_machine;
}

}  // namespace dculab::sim
