#include "sim/hardware/machine.hpp"

#include <cmath>
#include <utility>

#include "core/activation_mode.hpp"
#include "sim/hardware/machine_fields.hpp"
#include "sim/hardware/stack_fields.hpp"

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

// A figure that may be 0 in a file may be 0 here too, and so may one that need not stand there.
template <class Part, std::size_t N>
void check_figures(Problems& found, const std::string& section, const Part& part,
                   const std::array<FigureField<Part>, N>& fields) {
  for (const FigureField<Part>& field : fields) {
    const FigureInfo& info = field.info;
    const std::string key = section + std::string(info.key);
    const double value = visit_figure(part, field, [](const auto& figure) { return number_of(figure); });
    if (info.unit == unit::share)
      require_share(found, key, value);
    else if (info.is_required() && info.bounds.low > 0)
      require_positive(found, key, value);
    else
      require_not_negative(found, key, value);
  }
}

void check_memory(Problems& found, const Machine& machine) {
  if (machine.memory.empty() || machine.memory.size() > kMaxMemoryLevels) {
    found.push_back("memory must have 1 to " + std::to_string(kMaxMemoryLevels) + " levels, fastest first, DRAM last");
    return;
  }
  for (const MemoryLevel& level : machine.memory) {
    const std::string key = "memory." + level.name;
    if (level.name.empty()) found.push_back("every memory level needs a name");
    check_figures(found, key + ".", level, kLevel);
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

void check_fitted(Problems& found, const Machine& machine) {
  check_figures(found, "sustained.", machine.sustained, kSustained);
  check_figures(found, "overheads.", machine.overheads, kOverheads);
  check_figures(found, "stack.reached.", machine.stack.reached, kReached);
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
  if (machine.kind == lower::DeviceKind::gpu) check_figures(found, "waves.", machine.waves, kWaves);
  if (machine.kind == lower::DeviceKind::cpu && !machine.compute_capability.empty())
    found.push_back("compute_capability: only a GPU has one");
  check_fitted(found, machine);
  for (std::string& problem : problems(machine.power)) found.push_back(std::move(problem));
  return found;
}

}  // namespace dculab::sim
