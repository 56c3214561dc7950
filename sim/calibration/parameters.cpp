#include "sim/calibration/parameters.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace dculab::sim {
namespace {

constexpr double kLeastShare = 0.02;
constexpr double kLeastTime = 1e-10;     // s
constexpr double kLongestTime = 1e-2;    // s
constexpr double kSmallestPrior = 1e-7;  // s, of times whose machine file says 0

// Wide priors where nothing but a guess is known beforehand, narrow ones where peers agree.
constexpr std::array<Parameter, 18> kParameters{{
    {"stack.reached.matmul_compute", &Reached::matmul_compute, 0.30, kLeastShare, 1},
    {"stack.reached.attention_compute", &Reached::attention_compute, 0.50, kLeastShare, 1},
    {"stack.reached.elementwise_compute", &Reached::elementwise_compute, 0.70, kLeastShare, 1},
    {"stack.reached.conversion_compute", &Reached::conversion_compute, 0.50, kLeastShare, 1},
    {"sustained.dram_bandwidth", &Sustained::dram_bandwidth, 0.15, kLeastShare, 1},
    {"sustained.cache_bandwidth", &Sustained::cache_bandwidth, 0.40, kLeastShare, 1},
    {"stack.reached.cache_bandwidth", &Reached::cache_bandwidth, 0.20, kLeastShare, 1},
    {"stack.reached.matmul_overlap", &Reached::matmul_overlap, 0.50, kLeastShare, 1},
    {"stack.reached.overlap", &Reached::overlap, 0.50, kLeastShare, 1},
    {"stack.reached.block_lookup", &Reached::block_lookup, 1.00, kLeastTime, kLongestTime},
    {"stack.reached.counted_kernels", &Reached::counted_kernels, 0.50, kLeastShare, 1},
    {"sustained.refill_bandwidth", &Sustained::refill_bandwidth, 0.50, kLeastShare, 1},
    {"sustained.peer_link", &Sustained::peer_link, 0.30, kLeastShare, 1},
    {"overheads.kernel_launch", &Overheads::kernel_launch, 0.70, kLeastTime, kLongestTime},
    {"overheads.workgroup_start", &Overheads::workgroup_start, 1.00, kLeastTime, kLongestTime},
    {"overheads.timed_call", &Overheads::timed_call, 0.70, kLeastTime, kLongestTime},
    {"overheads.host_per_step", &Overheads::host_per_step, 1.00, kLeastTime, kLongestTime},
    {"overheads.host_per_sequence", &Overheads::host_per_sequence, 1.00, kLeastTime, kLongestTime},
}};

template <class Value>
[[nodiscard]] double to_number(Value value) {
  if constexpr (std::is_same_v<Value, double>)
    return value;
  else
    return value.value();
}

[[nodiscard]] bool is_host_time(Seconds Overheads::*member) {
  return member == &Overheads::host_per_step || member == &Overheads::host_per_sequence;
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

std::span<const Parameter> parameters() { return kParameters; }

Owner owner_of(const Parameter& parameter) {
  if (parameter.key == "stack.reached.counted_kernels") return Owner::program;
  if (parameter.key.starts_with("stack.")) return Owner::kernels;
  const auto* time = std::get_if<Seconds Overheads::*>(&parameter.member);
  return time != nullptr && is_host_time(*time) ? Owner::host : Owner::device;
}

bool is_known(const Machine& machine, const Parameter& parameter) {
  return owner_of(parameter) == Owner::program && machine.stack.is_own();
}

bool matters(const Machine& machine, const Parameter& parameter) {
  const auto* time = std::get_if<Seconds Overheads::*>(&parameter.member);
  if (owner_of(parameter) == Owner::program || (time != nullptr && *time == &Overheads::timed_call)) return false;
  const auto* share = std::get_if<double Sustained::*>(&parameter.member);
  if (share != nullptr && *share == &Sustained::peer_link) return machine.peer_link.has_value();
  return share == nullptr || *share != &Sustained::refill_bandwidth ||
         std::ranges::any_of(machine.memory, [](const MemoryLevel& level) { return level.kept_for > Seconds{}; });
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

Machine with_factors(const Machine& base, std::span<const double> theta) {
  Machine machine = base;
  for (std::size_t index = 0; index < parameters().size(); ++index)
    set(machine, parameters()[index], prior_of(base, parameters()[index]) * std::exp(theta[index]));
  return machine;
}

}  // namespace dculab::sim
