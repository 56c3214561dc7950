#include "sim/hardware/figure.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace dculab::sim {
namespace {

using Found = std::optional<Figure>;

template <class Part, std::size_t N>
using Members =
    std::array<std::pair<std::string_view, std::variant<int Part::*, double Part::*, Bytes Part::*, Seconds Part::*>>,
               N>;

constexpr Members<WaveResources, 8> kWaves{{{"wave_size", &WaveResources::wave_size},
                                            {"simds_per_unit", &WaveResources::simds_per_unit},
                                            {"max_waves_per_simd", &WaveResources::max_waves_per_simd},
                                            {"vgprs_per_lane", &WaveResources::vgprs_per_lane},
                                            {"vgpr_granule", &WaveResources::vgpr_granule},
                                            {"max_workgroups_per_unit", &WaveResources::max_workgroups_per_unit},
                                            {"lds_per_unit", &WaveResources::lds_per_unit},
                                            {"lds_granule", &WaveResources::lds_granule}}};
constexpr Members<Overheads, 4> kOverheads{{{"kernel_launch", &Overheads::kernel_launch},
                                            {"host_per_step", &Overheads::host_per_step},
                                            {"host_per_sequence", &Overheads::host_per_sequence},
                                            {"workgroup_start", &Overheads::workgroup_start}}};
constexpr Members<Efficiencies, 10> kEfficiencies{{{"matmul_compute", &Efficiencies::matmul_compute},
                                                   {"attention_compute", &Efficiencies::attention_compute},
                                                   {"elementwise_compute", &Efficiencies::elementwise_compute},
                                                   {"conversion_compute", &Efficiencies::conversion_compute},
                                                   {"dram_bandwidth", &Efficiencies::dram_bandwidth},
                                                   {"cache_bandwidth", &Efficiencies::cache_bandwidth},
                                                   {"overlap", &Efficiencies::overlap},
                                                   {"block_lookup", &Efficiencies::block_lookup},
                                                   {"refill_bandwidth", &Efficiencies::refill_bandwidth},
                                                   {"undisturbed", &Efficiencies::undisturbed}}};

template <class Part, std::size_t N>
[[nodiscard]] Found find_member(Part& part, const Members<Part, N>& members, std::string_view name) {
  for (const auto& [key, member] : members)
    if (key == name) return std::visit([&part](auto each) { return Figure(&(part.*each)); }, member);
  return std::nullopt;
}

template <class T>
[[nodiscard]] Found stated(std::optional<T>& figure) {
  return figure ? Found(&*figure) : std::nullopt;
}

[[nodiscard]] Found find_peak(Machine& machine, std::string_view dtype_name, std::string_view unit) {
  const std::optional<Dtype> dtype = parse_dtype(dtype_name);
  const auto peak = dtype ? machine.peaks.find(*dtype) : machine.peaks.end();
  if (peak == machine.peaks.end()) return std::nullopt;
  if (unit == "matrix") return stated(peak->second.matrix);
  return unit == "vector" ? Found(&peak->second.vector) : std::nullopt;
}

// "int4_int8", "rows_8"
template <class ByRows>
[[nodiscard]] Found find_matmul(std::map<MatmulKernel, ByRows>& matmuls, std::string_view kernel_name,
                                std::string_view rows_text) {
  constexpr std::string_view kRows = "rows_";
  const std::optional<MatmulKernel> kernel = parse_matmul_kernel(kernel_name);
  const auto by_rows = kernel ? matmuls.find(*kernel) : matmuls.end();
  if (by_rows == matmuls.end() || !rows_text.starts_with(kRows)) return std::nullopt;
  int rows = 0;
  std::from_chars(rows_text.data() + kRows.size(), rows_text.data() + rows_text.size(), rows);
  const auto figure = by_rows->second.find(rows);
  return figure == by_rows->second.end() ? std::nullopt : Found(&figure->second);
}

[[nodiscard]] Found find_level(Machine& machine, std::string_view name, std::string_view figure) {
  const auto level = std::find_if(machine.memory.begin(), machine.memory.end(),
                                  [name](const MemoryLevel& each) { return each.name == name; });
  if (level == machine.memory.end()) return std::nullopt;
  if (figure == "size") return Figure(&level->size);
  if (figure == "line") return Figure(&level->line);
  if (figure == "ways") return Figure(&level->ways);
  if (figure == "bandwidth") return Figure(&level->bandwidth);
  if (figure == "latency") return Figure(&level->latency);
  if (figure == "outstanding") return Figure(&level->outstanding);
  if (figure == "kept_for") return Figure(&level->kept_for);
  if (figure == "channels" && level->channels > 0) return Figure(&level->channels);
  if (figure == "bandwidth_per_unit") return Figure(&level->bandwidth_per_unit);
  return std::nullopt;
}

[[nodiscard]] Found find_plain(Machine& machine, std::string_view key) {
  if (key == "compute_units") return Figure(&machine.compute_units);
  if (key == "clock") return Figure(&machine.clock);
  if (key == "host_link") return stated(machine.host_link);
  if (key == "peer_link") return stated(machine.peer_link);
  if (key == "peers") return stated(machine.peers);
  if (key == "direct_peers") return stated(machine.direct_peers);
  if (key == "peer_latency") return stated(machine.peer_latency);
  if (key == "collective_start") return stated(machine.collective_start);
  if (key == "network_link") return stated(machine.network_link);
  if (key == "network_latency") return stated(machine.network_latency);
  return std::nullopt;
}

}  // namespace

std::optional<Figure> find_figure(Machine& machine, std::string_view key) {
  const std::size_t first = key.find('.'), last = key.rfind('.');
  if (first == std::string_view::npos) return find_plain(machine, key);
  const std::string_view section = key.substr(0, first), figure = key.substr(last + 1);
  const std::string_view between = first == last ? "" : key.substr(first + 1, last - first - 1);
  if (section == "peaks") return find_peak(machine, between, figure);
  if (section == "matmul_rates") return find_matmul(machine.matmul_rates, between, figure);
  if (section == "matmul_dram_shares") return find_matmul(machine.matmul_dram_shares, between, figure);
  if (section == "short_matmul_rates") return find_matmul(machine.short_matmul_rates, between, figure);
  if (section == "short_matmul_dram_shares") return find_matmul(machine.short_matmul_dram_shares, between, figure);
  if (section == "memory") return find_level(machine, between, figure);
  if (first != last) return std::nullopt;
  if (section == "waves" && machine.kind == lower::DeviceKind::gpu) return find_member(machine.waves, kWaves, figure);
  if (section == "overheads") return find_member(machine.overheads, kOverheads, figure);
  if (section == "efficiencies") return find_member(machine.efficiencies, kEfficiencies, figure);
  return std::nullopt;
}

std::optional<double> figure_value(const Machine& machine, std::string_view key) {
  const std::optional<Figure> figure = find_figure(const_cast<Machine&>(machine), key);
  if (!figure) return std::nullopt;
  return std::visit(
      [](auto* value) {
        if constexpr (requires { value->value(); })
          return value->value();
        else
          return static_cast<double>(*value);
      },
      *figure);
}

}  // namespace dculab::sim
