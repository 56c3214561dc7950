#include "sim/calibration/figure_scale.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "sim/calibration/parameters.hpp"

namespace dculab::sim {
namespace {

template <class T>
bool scale(std::optional<T>& figure, double factor) {
  if (!figure) return false;
  *figure = *figure * factor;
  return true;
}

void scale_count(int& count, double factor) {
  const double scaled = count * factor;
  count = factor < 1 ? std::max(1, std::min(count - 1, static_cast<int>(std::floor(scaled))))
                     : std::max(count + 1, static_cast<int>(std::ceil(scaled)));
}

bool scale_peak(Machine& machine, std::string_view key, double factor) {
  const std::size_t dot = key.find('.');
  const std::optional<Dtype> dtype = parse_dtype(key.substr(0, dot));
  const auto peak = dtype ? machine.peaks.find(*dtype) : machine.peaks.end();
  if (peak == machine.peaks.end()) return false;
  if (key.substr(dot + 1) == "matrix") return scale(peak->second.matrix, factor);
  peak->second.vector = peak->second.vector * factor;
  return true;
}

bool scale_level(Machine& machine, std::string_view key, double factor) {
  const std::size_t dot = key.rfind('.');
  const auto level = std::find_if(machine.memory.begin(), machine.memory.end(),
                                  [&](const MemoryLevel& each) { return each.name == key.substr(0, dot); });
  if (level == machine.memory.end()) return false;
  const std::string_view figure = key.substr(dot + 1);
  if (figure == "size") level->size = level->size * factor;
  if (figure == "line") level->line = level->line * (factor < 1 ? 0.5 : 2.0);
  if (figure == "bandwidth") level->bandwidth = level->bandwidth * factor;
  if (figure == "latency") level->latency = level->latency * factor;
  if (figure == "outstanding") level->outstanding *= factor;
  if (figure == "bandwidth_per_unit") level->bandwidth_per_unit = level->bandwidth_per_unit * factor;
  return figure != "ways";
}

bool scale_waves(WaveResources& waves, std::string_view figure, double factor) {
  constexpr std::array<std::pair<std::string_view, int WaveResources::*>, 3> kCounts{
      {{"max_waves_per_simd", &WaveResources::max_waves_per_simd},
       {"vgprs_per_lane", &WaveResources::vgprs_per_lane},
       {"max_workgroups_per_unit", &WaveResources::max_workgroups_per_unit}}};
  if (figure == "lds_per_unit") {
    waves.lds_per_unit = waves.lds_per_unit * factor;
    return true;
  }
  for (const auto& [key, member] : kCounts) {
    if (figure != key) continue;
    scale_count(waves.*member, factor);
    return true;
  }
  return false;
}

bool scale_link(Machine& machine, std::string_view key, double factor) {
  if (key == "host_link") return scale(machine.host_link, factor);
  if (key == "peer_link") return scale(machine.peer_link, factor);
  if (key == "peer_latency") return scale(machine.peer_latency, factor);
  if (key == "network_link") return scale(machine.network_link, factor);
  if (key == "network_latency") return scale(machine.network_latency, factor);
  if (key != "peers" || !machine.peers) return false;
  scale_count(*machine.peers, factor);
  return true;
}

}  // namespace

bool scale_figure(Machine& machine, std::string_view key, double factor) {
  constexpr std::string_view kPeaks = "peaks.";
  constexpr std::string_view kMemory = "memory.";
  constexpr std::string_view kWaves = "waves.";
  for (const Parameter& parameter : parameters()) {
    if (parameter.key != key) continue;
    set(machine, parameter, get(machine, parameter) * factor);
    return true;
  }
  if (key.starts_with(kPeaks)) return scale_peak(machine, key.substr(kPeaks.size()), factor);
  if (key.starts_with(kMemory)) return scale_level(machine, key.substr(kMemory.size()), factor);
  if (key.starts_with(kWaves)) return scale_waves(machine.waves, key.substr(kWaves.size()), factor);
  if (key == "clock") machine.clock = machine.clock * factor;
  if (key == "compute_units") scale_count(machine.compute_units, factor);
  return key == "clock" || key == "compute_units" || scale_link(machine, key, factor);
}

}  // namespace dculab::sim
