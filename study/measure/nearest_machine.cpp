#include "study/measure/nearest_machine.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "study/scenario/device_words.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/resolve.hpp"

namespace dculab::study {
namespace {

[[nodiscard]] bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::ranges::find(words, word) != words.end();
}

// By which factor compute units and memory differ, as logarithms.
[[nodiscard]] double distance(const sim::Machine& machine, const kernels::gpu::DeviceInfo& device) {
  const double units = static_cast<double>(device.compute_units) / machine.compute_units;
  return std::abs(std::log(units)) + std::abs(std::log(device.memory / machine.memory.back().size));
}

// Which of two is taken: the smaller.
using Rank = std::tuple<bool, std::ptrdiff_t, double, std::size_t>;

[[nodiscard]] Rank rank_of(const sim::Machine& machine, const std::vector<std::string>& said,
                           const kernels::gpu::DeviceInfo& device) {
  const std::vector<std::string> name = device_words(machine.name);
  return {!has(said, name.front()), -words_said(name, said), distance(machine, device), name.size()};
}

[[nodiscard]] bool may_be(const sim::Machine& machine, const std::vector<std::string>& said,
                          const kernels::gpu::DeviceInfo& device) {
  if (machine.kind != lower::DeviceKind::gpu || machine.waves.wave_size != device.wave_size) return false;
  const auto isa = std::ranges::find_if(said, [](const std::string& word) { return word.starts_with("gfx"); });
  return isa != said.end() ? *isa == machine.isa : has(said, device_words(machine.name).front());
}

}  // namespace

std::optional<sim::Machine> nearest_machine(const kernels::gpu::DeviceInfo& device) {
  const std::vector<std::string> said = device_words(device.name);
  std::optional<std::pair<Rank, sim::Machine>> nearest;
  for (const std::string& name : machine_names()) {
    sim::Machine machine = resolve_machine(name);
    if (!may_be(machine, said, device)) continue;
    const Rank rank = rank_of(machine, said, device);
    if (!nearest || rank < nearest->first) nearest.emplace(rank, std::move(machine));
  }
  return nearest ? std::optional(std::move(nearest->second)) : std::nullopt;
}

sim::Machine machine_like(const std::string& name, const kernels::gpu::DeviceInfo& device) {
  if (!name.empty()) return resolve_machine(name);
  if (std::optional<sim::Machine> machine = nearest_machine(device)) return *machine;
  std::string names;
  for (const std::string& each : machine_names()) names += (names.empty() ? "" : ", ") + each;
  throw InputError("--machine-file",
                   "no shipped machine is known to be like " + device.name +
                       "; add --like MACHINE, from which caches, latencies and registers are taken: " + names);
}

}  // namespace dculab::study
