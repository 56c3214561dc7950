#include "sim/calibration/parameters.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <string>
#include <type_traits>
#include <vector>

#include "sim/hardware/machine_fields.hpp"
#include "sim/hardware/stack_fields.hpp"

namespace dculab::sim {
namespace {

constexpr double kSmallestPrior = 1e-7;  // s, of times whose machine file says 0

// Those of a section that have a prior. `section` goes before their keys.
template <class Part, std::size_t N>
void add_fitted(const std::array<FigureField<Part>, N>& fields, const std::string& section,
                std::deque<std::string>& keys, std::vector<Parameter>& found) {
  for (const FigureField<Part>& field : fields) {
    if (field.info.prior.place == 0) continue;
    const std::string_view key = keys.emplace_back(section + std::string(field.info.key));
    std::visit(
        [&](auto member) {
          using Member = decltype(Parameter::member);
          if constexpr (std::is_constructible_v<Member, decltype(member)>)
            found.push_back({field.info.prior, key, Member(member)});
        },
        field.member);
  }
}

// Of all sections, in their places. `keys` keeps what theirs refer to.
[[nodiscard]] std::vector<Parameter> fitted_figures(std::deque<std::string>& keys) {
  std::vector<Parameter> found;
  add_fitted(kReached, "stack.reached.", keys, found);
  add_fitted(kSustained, "sustained.", keys, found);
  add_fitted(kOverheads, "overheads.", keys, found);
  std::ranges::sort(found, {}, [](const Parameter& each) { return each.place; });
  return found;
}

template <class Value>
[[nodiscard]] double to_number(Value value) {
  if constexpr (std::is_same_v<Value, double>)
    return value;
  else
    return value.value();
}

// Calls `use` with the field that a member pointer means.
template <class MachineType, class Use>
void visit_field(MachineType& machine, const Parameter& parameter, Use use) {
  std::visit(
      [&](auto member) {
        if constexpr (std::is_same_v<decltype(member), Seconds Overheads::*>)
          use(machine.overheads.*member);
        else if constexpr (std::is_same_v<decltype(member), double Sustained::*>)
          use(machine.sustained.*member);
        else
          use(machine.stack.reached.*member);
      },
      parameter.member);
}

}  // namespace

std::span<const Parameter> parameters() {
  static std::deque<std::string> keys;
  static const std::vector<Parameter> kFitted = fitted_figures(keys);
  return kFitted;
}

bool is_known(const Machine& machine, const Parameter& parameter) {
  return parameter.owner == Owner::program && machine.stack.is_own();
}

bool matters(const Machine& machine, const Parameter& parameter) {
  const auto* time = std::get_if<Seconds Overheads::*>(&parameter.member);
  if (parameter.owner == Owner::program || (time != nullptr && *time == &Overheads::timed_call)) return false;
  const auto* share = std::get_if<double Sustained::*>(&parameter.member);
  if (share != nullptr && *share == &Sustained::peer_link) return machine.peer_link.has_value();
  return share == nullptr || *share != &Sustained::cold_miss_bandwidth ||
         std::ranges::any_of(machine.memory, [](const MemoryLevel& level) { return level.retention_time > Seconds{}; });
}

double get(const Machine& machine, const Parameter& parameter) {
  double result = 0;
  visit_field(machine, parameter, [&result](const auto& field) { result = to_number(field); });
  return result;
}

void set(Machine& machine, const Parameter& parameter, double value) {
  const double stated = get(machine, parameter);
  const double lowest = stated > 0 ? std::min(parameter.lowest, stated) : parameter.lowest;
  const double held = std::clamp(value, lowest, std::max(parameter.highest, stated));
  visit_field(machine, parameter, [held](auto& field) { field = std::decay_t<decltype(field)>(held); });
}

double prior_of(const Machine& base, const Parameter& parameter) {
  const double stated = get(base, parameter);
  return stated > 0 ? stated : kSmallestPrior;
}

Machine with_own_host(Machine machine) {
  machine.overheads.host_per_step = machine.stack.host_per_step.value_or(machine.overheads.host_per_step);
  machine.overheads.host_per_sequence = machine.stack.host_per_sequence.value_or(machine.overheads.host_per_sequence);
  machine.stack.host_per_step.reset();
  machine.stack.host_per_sequence.reset();
  return machine;
}

Machine with_factors(const Machine& base, std::span<const double> theta) {
  Machine machine = base;
  for (std::size_t index = 0; index < parameters().size(); ++index)
    set(machine, parameters()[index], prior_of(base, parameters()[index]) * std::exp(theta[index]));
  return machine;
}

}  // namespace dculab::sim
