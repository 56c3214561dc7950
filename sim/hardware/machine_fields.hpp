// The sections of a machine that are lists of figures, as tables: adding a figure is one line here. Reader and writer
// of machine files, what scenarios set and what sensitivities move go by them; links are kLinks (device_link.hpp), a
// stack's figures kStackFigures and kReached (stack.hpp, reached.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <variant>

#include "sim/hardware/machine.hpp"

namespace dculab::sim {

enum class Necessity : std::uint8_t { required, optional };

// A figure of `Part`: a time, a size, a bandwidth, a whole number or a fraction in (0, 1], as the member's type says.
template <class Part>
struct Field {
  std::string_view key;
  std::variant<Seconds Part::*, Bytes Part::*, BytesPerSecond Part::*, int Part::*, double Part::*> member;
  Necessity necessity = Necessity::optional;
};

inline constexpr std::array<Field<Overheads>, 5> kOverheads{{
    {"kernel_launch", &Overheads::kernel_launch, Necessity::required},
    {"host_per_step", &Overheads::host_per_step},
    {"host_per_sequence", &Overheads::host_per_sequence},
    {"workgroup_start", &Overheads::workgroup_start},
    {"timed_call", &Overheads::timed_call},
}};

inline constexpr std::array<Field<Sustained>, 4> kSustained{{
    {"dram_bandwidth", &Sustained::dram_bandwidth},
    {"cache_bandwidth", &Sustained::cache_bandwidth},
    {"refill_bandwidth", &Sustained::refill_bandwidth},
    {"peer_link", &Sustained::peer_link},
}};

inline constexpr std::array<Field<WaveResources>, 8> kWaves{{
    {"wave_size", &WaveResources::wave_size, Necessity::required},
    {"simds_per_unit", &WaveResources::simds_per_unit, Necessity::required},
    {"max_waves_per_simd", &WaveResources::max_waves_per_simd, Necessity::required},
    {"vgprs_per_lane", &WaveResources::vgprs_per_lane, Necessity::required},
    {"vgpr_granule", &WaveResources::vgpr_granule, Necessity::required},
    {"max_workgroups_per_unit", &WaveResources::max_workgroups_per_unit, Necessity::required},
    {"lds_per_unit", &WaveResources::lds_per_unit, Necessity::required},
    {"lds_granule", &WaveResources::lds_granule, Necessity::required},
}};

// Channels come before the bandwidth that may follow them.
inline constexpr std::array<Field<MemoryLevel>, 9> kLevel{{
    {"size", &MemoryLevel::size, Necessity::required},
    {"line", &MemoryLevel::line, Necessity::required},
    {"channels", &MemoryLevel::channels},
    {"bandwidth", &MemoryLevel::bandwidth, Necessity::required},
    {"latency", &MemoryLevel::latency, Necessity::required},
    {"outstanding", &MemoryLevel::outstanding},
    {"bandwidth_per_unit", &MemoryLevel::bandwidth_per_unit},
    {"kept_for", &MemoryLevel::kept_for},
    {"ways", &MemoryLevel::ways},
}};

}  // namespace dculab::sim
