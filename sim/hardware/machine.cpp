#include "sim/hardware/machine.hpp"

#include <cmath>
#include <utility>

#include "core/activation_mode.hpp"

namespace dculab::sim {
namespace {

using Problems = std::vector<std::string>;

void require_positive(Problems& found, const std::string& key, double value) {
  if (!(value > 0) || !std::isfinite(value)) found.push_back(key + " must be positive");
}

void require_not_negative(Problems& found, const std::string& key, double value) {
  if (!(value >= 0) || !std::isfinite(value)) found.push_back(key + " must not be negative");
}

void require_share(Problems& found, const std::string& key, double value) {
  if (!(value > 0 && value <= 1)) found.push_back(key + " must lie in (0, 1]");
}

void check_memory(Problems& found, const Machine& machine) {
  if (machine.memory.empty() || machine.memory.size() > kMaxMemoryLevels) {
    found.push_back("memory must have 1 to " + std::to_string(kMaxMemoryLevels) + " levels, fastest first, DRAM last");
    return;
  }
  for (const MemoryLevel& level : machine.memory) {
    const std::string key = "memory." + level.name;
    if (level.name.empty()) found.push_back("every memory level needs a name");
    require_positive(found, key + ".size", level.size.value());
    require_positive(found, key + ".line", level.line.value());
    require_positive(found, key + ".bandwidth", level.bandwidth.value());
    require_positive(found, key + ".latency", level.latency.value());
    require_not_negative(found, key + ".outstanding", level.outstanding);
    require_not_negative(found, key + ".bandwidth_per_unit", level.bandwidth_per_unit.value());
    require_not_negative(found, key + ".kept_for", level.kept_for.value());
    require_not_negative(found, key + ".ways", level.ways);
    require_not_negative(found, key + ".channels", level.channels);
  }
  for (std::size_t index = 1; index < machine.memory.size(); ++index) {
    const MemoryLevel& above = machine.memory[index - 1];
    const MemoryLevel& below = machine.memory[index];
    if (below.latency < above.latency)
      found.push_back("memory." + below.name + ".latency is below that of " + above.name +
                      ", but levels are listed fastest first");
  }
  if (machine.dram().scope != Scope::device) found.push_back("the last memory level, DRAM, must have scope device");
}

void check_compute(Problems& found, const Machine& machine) {
  if (machine.compute_units < 1) found.push_back("compute_units must be at least 1");
  require_positive(found, "clock", machine.clock.value());
  if (!machine.peaks.contains(Dtype::f32)) found.push_back("peaks.f32 is missing: other formats fall back to it");
  for (const auto& [dtype, peak] : machine.peaks) {
    const std::string key = "peaks." + std::string(name(dtype));
    require_positive(found, key + ".vector", peak.vector.value());
    if (peak.matrix) require_positive(found, key + ".matrix", peak.matrix->value());
  }
}

template <class ByRows, class Check>
void check_matmuls(Problems& found, std::string_view section, const std::map<MatmulKernel, ByRows>& kernels,
                   Check&& check) {
  for (const auto& [kernel, by_rows] : kernels) {
    const std::string key = std::string(section) + "." + name(kernel);
    if (by_rows.empty()) found.push_back(key + " is empty; leave it out or give rows_1, rows_8, ...");
    for (const auto& [rows, figure] : by_rows) {
      if (rows < 1) found.push_back(key + ": rows must be at least 1");
      check(key + ".rows_" + std::to_string(rows), figure);
    }
  }
}

template <class ByRows, class NeededByRows>
void require_kernels(Problems& found, std::string_view section, const std::map<MatmulKernel, ByRows>& kernels,
                     std::string_view needed_section, const std::map<MatmulKernel, NeededByRows>& needed) {
  for (const auto& [kernel, by_rows] : kernels)
    if (!needed.contains(kernel))
      found.push_back(std::string(section) + "." + name(kernel) + " needs " + std::string(needed_section) + "." +
                      name(kernel));
}

void check_matmuls(Problems& found, const Machine& machine) {
  const auto is_rate = [&](const std::string& key, FlopsPerSecond rate) { require_positive(found, key, rate.value()); };
  const auto is_share = [&](const std::string& key, double share) { require_share(found, key, share); };
  check_matmuls(found, "matmul_rates", machine.matmul_rates, is_rate);
  check_matmuls(found, "short_matmul_rates", machine.short_matmul_rates, is_rate);
  check_matmuls(found, "matmul_dram_shares", machine.matmul_dram_shares, is_share);
  check_matmuls(found, "short_matmul_dram_shares", machine.short_matmul_dram_shares, is_share);
  require_kernels(found, "short_matmul_rates", machine.short_matmul_rates, "matmul_rates", machine.matmul_rates);
  require_kernels(found, "matmul_dram_shares", machine.matmul_dram_shares, "matmul_rates", machine.matmul_rates);
  require_kernels(found, "short_matmul_dram_shares", machine.short_matmul_dram_shares, "matmul_dram_shares",
                  machine.matmul_dram_shares);
}

void check_waves(Problems& found, const WaveResources& waves) {
  for (const auto& [key, value] : {std::pair{"waves.wave_size", waves.wave_size},
                                   {"waves.simds_per_unit", waves.simds_per_unit},
                                   {"waves.max_waves_per_simd", waves.max_waves_per_simd},
                                   {"waves.vgprs_per_lane", waves.vgprs_per_lane},
                                   {"waves.vgpr_granule", waves.vgpr_granule},
                                   {"waves.max_workgroups_per_unit", waves.max_workgroups_per_unit}})
    require_positive(found, key, value);
  require_positive(found, "waves.lds_per_unit", waves.lds_per_unit.value());
  require_positive(found, "waves.lds_granule", waves.lds_granule.value());
}

void check_reached(Problems& found, const Reached& reached) {
  for (const ReachedField& field : kReached) {
    const std::string key = "stack.reached." + std::string(field.key);
    if (const auto* share = std::get_if<double Reached::*>(&field.member)) require_share(found, key, reached.**share);
    if (const auto* time = std::get_if<Seconds Reached::*>(&field.member))
      require_not_negative(found, key, (reached.**time).value());
  }
}

void check_fitted(Problems& found, const Machine& machine) {
  const Sustained& shares = machine.sustained;
  for (const auto& [key, value] : {std::pair{"sustained.dram_bandwidth", shares.dram_bandwidth},
                                   {"sustained.cache_bandwidth", shares.cache_bandwidth},
                                   {"sustained.refill_bandwidth", shares.refill_bandwidth},
                                   {"sustained.peer_link", shares.peer_link}})
    require_share(found, key, value);
  const Overheads& times = machine.overheads;
  for (const auto& [key, value] : {std::pair{"overheads.kernel_launch", times.kernel_launch},
                                   {"overheads.host_per_step", times.host_per_step},
                                   {"overheads.host_per_sequence", times.host_per_sequence},
                                   {"overheads.workgroup_start", times.workgroup_start},
                                   {"overheads.timed_call", times.timed_call}})
    require_not_negative(found, key, value.value());
  check_reached(found, machine.stack.reached);
}

}  // namespace

std::string name(MatmulKernel kernel) {
  return std::string(name(kernel.weights)) + "_" + std::string(name(kernel.activations));
}

std::optional<MatmulKernel> parse_matmul_kernel(std::string_view text) {
  const std::size_t end = text.rfind('_');
  if (end == std::string_view::npos) return std::nullopt;
  const std::optional<Dtype> weights = parse_dtype(text.substr(0, end));
  const std::optional<ActivationMode> activations = parse_activation_mode(text.substr(end + 1));
  if (!weights || !activations) return std::nullopt;
  const MatmulKernel kernel{*weights, *activations};
  return name(kernel) == text ? std::optional(kernel) : std::nullopt;
}

std::string family_of(const Machine& machine) {
  if (!machine.compute_capability.empty()) return "compute capability " + machine.compute_capability;
  return machine.isa.empty() ? machine.name : machine.isa;
}

std::vector<std::string> problems(const Machine& machine) {
  Problems found;
  if (machine.name.empty()) found.push_back("name is missing");
  check_compute(found, machine);
  check_matmuls(found, machine);
  check_memory(found, machine);
  if (machine.kind == lower::DeviceKind::gpu) check_waves(found, machine.waves);
  if (machine.kind == lower::DeviceKind::cpu && !machine.compute_capability.empty())
    found.push_back("compute_capability: only a GPU has one");
  check_fitted(found, machine);
  return found;
}

}  // namespace dculab::sim
