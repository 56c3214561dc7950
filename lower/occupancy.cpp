#include "lower/occupancy.hpp"

#include <algorithm>
#include <cmath>

namespace dculab::lower {
namespace {

constexpr int kMaxVgprs = 256;

// GCN and CDNA have 800 scalar registers per SIMD, given out in these steps.
[[nodiscard]] int waves_by_sgprs(int sgprs) {
  if (sgprs <= 80) return 10;
  if (sgprs <= 88) return 9;
  return sgprs <= 100 ? 8 : 7;
}

[[nodiscard]] int waves_by_vgprs(const WaveResources& waves, int vgprs) {
  if (vgprs < waves.vgpr_granule) return waves.max_waves_per_simd;
  const int allocated = (vgprs + waves.vgpr_granule - 1) / waves.vgpr_granule * waves.vgpr_granule;
  return std::clamp(waves.vgprs_per_lane / allocated, 1, waves.max_waves_per_simd);
}

}  // namespace

int registers(double wanted) { return static_cast<int>(std::min<double>(kMaxVgprs, std::ceil(wanted))); }

int waves_per_workgroup(const WaveResources& waves, const KernelResources& kernel) {
  return (kernel.threads + waves.wave_size - 1) / waves.wave_size;
}

int waves_per_simd(const WaveResources& waves, const KernelResources& kernel) {
  const int by_vgprs = waves_by_vgprs(waves, kernel.vgprs);
  return kernel.sgprs == 0 ? by_vgprs : std::min(by_vgprs, waves_by_sgprs(kernel.sgprs));
}

int workgroups_per_unit(const WaveResources& waves, const KernelResources& kernel) {
  const int group = waves_per_workgroup(waves, kernel);
  const int unit_waves = waves.simds_per_unit * waves.max_waves_per_simd;
  int limit = group == 1 ? unit_waves : std::min(unit_waves / group, waves.max_workgroups_per_unit);
  if (kernel.lds > Bytes{}) {
    const double granules = std::ceil(kernel.lds / waves.lds_granule);
    const double by_lds = std::floor(waves.lds_per_unit / (granules * waves.lds_granule));
    limit = static_cast<int>(std::min<double>(limit, by_lds));
  }
  return std::min(limit, waves.simds_per_unit * waves_per_simd(waves, kernel) / group);
}

}  // namespace dculab::lower
