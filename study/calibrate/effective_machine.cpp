#include "study/calibrate/effective_machine.hpp"

#include "config/machine_file.hpp"
#include "sim/calibration/parameters.hpp"
#include "sim/compute/peak.hpp"
#include "sim/hardware/design.hpp"
#include "sim/hardware/figure.hpp"
#include "sim/memory/set_associative_cache.hpp"

namespace dculab::study {
namespace {

constexpr const char* kPrior = "prior, see docs/reference/cost-law.md";

void cite_default(sim::Machine& machine, const std::string& key, const std::string& why) {
  config::cite(machine, key, sim::Evidence::assumed, "default: " + why);
}

void add_level_defaults(sim::Machine& machine) {
  for (sim::MemoryLevel& level : machine.memory) {
    const std::string path = "memory." + level.name + ".";
    if (level.bandwidth_per_unit.value() == 0) {
      const bool own = level.scope == sim::Scope::compute_unit;
      level.bandwidth_per_unit = level.bandwidth / (own ? machine.compute_units : sim::sharing_units(machine));
      cite_default(machine, path + "bandwidth_per_unit", "its share of the bandwidth");
    }
    if (level.ways != 0 || &level == &machine.memory.back()) continue;
    level.ways = sim::kDefaultWays;
    cite_default(machine, path + "ways", "sim/memory/set_associative_cache.hpp; only the cache replay asks");
  }
}

void add_links(const sim::Machine& machine, std::vector<Absence>& found) {
  if (!machine.host_link) found.push_back({"host_link", "none", "host and device memory are one"});
  if (!machine.peer_link) found.push_back({"peer_link", "none", "no model is split over several"});
  if (!machine.peers) found.push_back({"peers", "none", "not stated"});
  if (!machine.direct_peers)
    found.push_back({"direct_peers", "none", "no device reaches another in one hop but by NCCL's and RCCL's rings"});
  if (!machine.single_peer_link) found.push_back({"single_peer_link", "none", "one peer has all of peer_link"});
  if (!machine.peer_latency) found.push_back({"peer_latency", "none", "not stated"});
  if (!machine.collective_start)
    found.push_back({"collective_start", "the library's", "6.6 us of NCCL, 12 us of RCCL"});
  if (!machine.network_link) found.push_back({"network_link", "none", "not stated"});
  if (!machine.network_latency) found.push_back({"network_latency", "none", "not stated"});
}

void add_costs(const sim::Machine& machine, std::vector<Absence>& found) {
  for (const char* key : {"power.idle", "power.memory_bound", "power.compute_bound", "price_per_hour"})
    if (!sim::figure_value(machine, key))
      found.push_back({key, "none", "not stated: nothing is said of what it costs"});
}

}  // namespace

sim::Machine effective_machine(sim::Machine machine) {
  for (const sim::Parameter& parameter : sim::parameters()) {
    const std::string key(parameter.key);
    if (!sim::matters(machine, parameter) || sim::source_of(machine, key) != nullptr) continue;
    if (key.starts_with(sim::kOfStack))
      machine.stack.sources[key.substr(sim::kOfStack.size())] = std::string("assumed: ") + kPrior;
    else
      config::cite(machine, key, sim::Evidence::assumed, kPrior);
  }
  add_level_defaults(machine);
  return machine;
}

std::vector<Absence> absences(const sim::Machine& machine) {
  std::vector<Absence> found;
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16, Dtype::int8, Dtype::fp8_e4m3, Dtype::fp8_e5m2})
    if (!machine.peaks.contains(dtype))
      found.push_back({"peaks." + std::string(name(dtype)),
                       "as " + std::string(name(sim::multiply_format(machine, dtype).dtype)),
                       "no such arithmetic: converted on the way"});
  for (const sim::MemoryLevel& level : machine.memory)
    if (level.outstanding == 0)
      found.push_back({"memory." + level.name + ".outstanding", "any number", "not limiting: the waves in flight are"});
  if (machine.kind == lower::DeviceKind::gpu && machine.kernel_target.empty())
    found.push_back({"kernel_target", "none", "a formula decides the occupancy"});
  if (machine.kind == lower::DeviceKind::gpu && machine.compute_capability.empty())
    found.push_back({"compute_capability", "none", "treated as no NVIDIA GPU"});
  add_links(machine, found);
  add_costs(machine, found);
  return found;
}

}  // namespace dculab::study
