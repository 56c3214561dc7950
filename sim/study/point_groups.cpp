#include "sim/study/point_groups.hpp"

#include <string_view>
#include <utility>

#include "sim/hardware/figure.hpp"

namespace dculab::sim {
namespace {

constexpr double kHalf = 0.5;             // of a prior's width
constexpr double kProgramOnVendor = 0.7;  // two halves of it, independent of each other: sqrt(1/2)
constexpr double kSourceTimeSigma = 0.07, kClockTimeSigma = 0.3;
constexpr double kMeasuredFreedom = 0.7;

// Shares of the priors' widths, by whose figure it is.
struct Widths {
  double device = 0, kernels = 0, program = 0, host = 0;

  [[nodiscard]] double of(Owner owner) const {
    switch (owner) {
      case Owner::device:
        return device;
      case Owner::kernels:
        return kernels;
      case Owner::program:
        return program;
      case Owner::host:
        return host;
    }
    return 0;
  }

  double time = 0;
};

[[nodiscard]] CrossedGroup group(std::string name, const Widths& widths) {
  CrossedGroup result{std::move(name), {}};
  for (const Parameter& parameter : parameters()) {
    result.sigma.push_back(widths.of(parameter.owner) * parameter.log_sigma * parameter.of_points);
  }
  result.sigma.push_back(widths.time);
  result.is_nuisance = widths.time > 0;
  return result;
}

[[nodiscard]] PointGroup group_of_hosts() { return {group("host times", {.host = 1})}; }

[[nodiscard]] std::string program_of(const Stack& stack) {
  return stack.age > 0 ? stack.program + " (older)" : stack.program;
}

}  // namespace

std::string vendor_name(const Machine& machine) { return std::string(lower::name(machine.vendor)); }

PointGroup group_of_program(const Stack& stack) { return {group("program " + program_of(stack), {.host = 1})}; }

PointGroup group_of_program_on_vendor(const Machine& machine) {
  return {group(program_of(machine.stack) + " on " + vendor_name(machine), {.kernels = kProgramOnVendor, .program = 1}),
          Distance::program};
}

PointGroup group_of_stack(const Stack& stack) { return {group("stack " + stack.name, {.host = kHalf})}; }

PointGroup group_of_stack_on_vendor(const Machine& machine) {
  return {group("stack " + machine.stack.name + " on " + vendor_name(machine), {.kernels = kHalf, .program = kHalf}),
          Distance::stack};
}

PointGroup group_of_source(const std::string& source, const std::string& clock) {
  return {group("source " + source + (clock.empty() ? "" : ", " + clock),
                {.time = clock.empty() ? kSourceTimeSigma : kClockTimeSigma}),
          Distance::source};
}

std::vector<PointGroup> groups_of_device(const Machine& machine) {
  return {group_of_hosts(),
          {group("vendor " + vendor_name(machine), {.device = 1, .kernels = kHalf}), Distance::vendor},
          {group("family " + family_of(machine), {.device = kHalf})},
          {group("machine " + machine.name, {.device = kHalf}), Distance::machine}};
}

std::vector<PointGroup> groups_of(const Machine& machine) {
  std::vector<PointGroup> groups = groups_of_device(machine);
  groups.push_back(group_of_program(machine.stack));
  groups.push_back(group_of_stack(machine.stack));
  groups.push_back(group_of_program_on_vendor(machine));
  groups.push_back(group_of_stack_on_vendor(machine));
  groups.push_back({group(program_of(machine.stack) + " for " + family_of(machine), {.kernels = 1})});
  return groups;
}

std::vector<PointGroup> groups_anywhere(const Stack& stack) {
  return {group_of_hosts(), group_of_program(stack), group_of_stack(stack)};
}

std::vector<double> sum_of(const Effects& effects, const std::vector<PointGroup>& groups) {
  std::vector<double> sum(parameters().size() + 1, 0.0);
  for (const PointGroup& each : groups) {
    const auto known = effects.find(each.group.name);
    if (known == effects.end()) continue;
    for (std::size_t figure = 0; figure < sum.size(); ++figure) sum[figure] += known->second[figure];
  }
  return sum;
}

double freedom(const Machine& machine, const Parameter& parameter) {
  const std::string* source = source_of(machine, parameter.key);
  return source != nullptr && source->starts_with("measured") ? kMeasuredFreedom : 1;
}

Machine moved(const Machine& machine, std::vector<double> theta) {
  for (std::size_t index = 0; index < parameters().size(); ++index)
    theta[index] *= freedom(machine, parameters()[index]);
  return with_factors(machine, theta);
}

}  // namespace dculab::sim
