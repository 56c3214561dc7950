// The sections of a machine file that are lists of figures, as tables: adding a figure is one line here.
#pragma once

#include <array>
#include <string_view>
#include <variant>

#include "config/map_reader.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::config {

// Each count fits an int with room to spare; products of them are taken as doubles.
inline constexpr double kLargestFigureCount = 1 << 20;

// Figures that have bounds of their own, by how their keys end.
struct FigureBounds {
  std::string_view key_end;
  Range range;
};
inline constexpr std::array<FigureBounds, 6> kFigureBounds{{
    {"latency", between(1e-12, 1e3)},  // of memory levels, and of links
    {".kept_for", between(1e-12, 1e3)},
    {"collective_start", between(1e-12, 1e3)},
    {".outstanding", between(0, kLargestFigureCount)},
    {".simds_per_unit", between(1, 1024)},  // the product of these two counts waves
    {".max_waves_per_simd", between(1, 1024)},
}};

// What the figure under `key` of a machine file may be: a few orders of magnitude more than any hardware has, so that
// whatever is computed from them is finite.
template <class T>
constexpr Range allowed_figure(std::string_view key) {
  for (const FigureBounds& bounds : kFigureBounds)
    if (key.ends_with(bounds.key_end)) return bounds.range;
  if constexpr (std::is_same_v<T, int>) return between(1, kLargestFigureCount);
  if constexpr (std::is_same_v<T, double>) return between(1e-4, 1);            // shares
  if constexpr (std::is_same_v<T, Seconds>) return between(0, 1e3);            // overheads
  if constexpr (std::is_same_v<T, Bytes>) return between(1, 0x1p50);           // 1024 TiB
  if constexpr (std::is_same_v<T, Hertz>) return between(1e3, 1e12);           // 1 kHz, 1000 GHz
  if constexpr (std::is_same_v<T, BytesPerSecond>) return between(1e3, 1e20);  // 1 kB/s, 10^8 TB/s
  if constexpr (std::is_same_v<T, FlopsPerSecond>) return between(1e3, 1e21);  // 1 kFLOP/s, 10^6 PFLOP/s
}

enum class Necessity : std::uint8_t { required, optional };

// A figure of `Part`: a time, a size, a whole number or a fraction in (0, 1], as the member's type says.
template <class Part>
struct Field {
  std::string_view key;
  std::variant<Seconds Part::*, Bytes Part::*, int Part::*, double Part::*> member;
  Necessity necessity = Necessity::optional;
};

inline constexpr std::array<Field<sim::Overheads>, 4> kOverheads{{
    {"kernel_launch", &sim::Overheads::kernel_launch, Necessity::required},
    {"host_per_step", &sim::Overheads::host_per_step},
    {"host_per_sequence", &sim::Overheads::host_per_sequence},
    {"workgroup_start", &sim::Overheads::workgroup_start},
}};

inline constexpr std::array<Field<sim::Efficiencies>, 10> kEfficiencies{{
    {"matmul_compute", &sim::Efficiencies::matmul_compute},
    {"attention_compute", &sim::Efficiencies::attention_compute},
    {"elementwise_compute", &sim::Efficiencies::elementwise_compute},
    {"conversion_compute", &sim::Efficiencies::conversion_compute},
    {"dram_bandwidth", &sim::Efficiencies::dram_bandwidth},
    {"cache_bandwidth", &sim::Efficiencies::cache_bandwidth},
    {"overlap", &sim::Efficiencies::overlap},
    {"block_lookup", &sim::Efficiencies::block_lookup},
    {"refill_bandwidth", &sim::Efficiencies::refill_bandwidth},
    {"undisturbed", &sim::Efficiencies::undisturbed},
}};

inline constexpr std::array<Field<sim::WaveResources>, 8> kWaves{{
    {"wave_size", &sim::WaveResources::wave_size, Necessity::required},
    {"simds_per_unit", &sim::WaveResources::simds_per_unit, Necessity::required},
    {"max_waves_per_simd", &sim::WaveResources::max_waves_per_simd, Necessity::required},
    {"vgprs_per_lane", &sim::WaveResources::vgprs_per_lane, Necessity::required},
    {"vgpr_granule", &sim::WaveResources::vgpr_granule, Necessity::required},
    {"max_workgroups_per_unit", &sim::WaveResources::max_workgroups_per_unit, Necessity::required},
    {"lds_per_unit", &sim::WaveResources::lds_per_unit, Necessity::required},
    {"lds_granule", &sim::WaveResources::lds_granule, Necessity::required},
}};

}  // namespace dculab::config
