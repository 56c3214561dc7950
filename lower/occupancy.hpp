// How many workgroups of a kernel fit on one compute unit at a time.
//
//   waves per SIMD by registers  = floor(register file / roundup(vgprs, granule)), at most the hardware's limit
//   workgroups by LDS            = floor(LDS of the unit / roundup(lds, granule))
//   workgroups per unit          = min(limit, by LDS, floor(SIMDs * waves per SIMD / waves per workgroup))
//
// A workgroup of one wave needs no barrier and is not held by the limit of workgroups. Waves are placed round-robin
// over the SIMDs. Source: LLVM AMDGPUBaseInfo.cpp and AMDGPUSubtarget. With 32-lane waves and 512 registers per lane
// the same rules describe an NVIDIA SM.
#pragma once

#include "core/units.hpp"
#include "lower/device.hpp"

namespace dculab::lower {

// What a compiled kernel asks for.
struct KernelResources {
  int threads = 256;  // of one workgroup
  int vgprs = 32;     // per lane
  int sgprs = 0;      // per wave, VCC and the like included; 0 = not limiting
  Bytes lds{};        // of one workgroup
};

// Of a kernel that was not compiled: no more than a lane can address.
[[nodiscard]] int registers(double wanted);

[[nodiscard]] int waves_per_workgroup(const WaveResources& waves, const KernelResources& kernel);

// Waves that the registers of one SIMD hold; at least 1, because the compiler spills rather than fail.
[[nodiscard]] int waves_per_simd(const WaveResources& waves, const KernelResources& kernel);

// 0 when a workgroup needs more than a compute unit has.
[[nodiscard]] int workgroups_per_unit(const WaveResources& waves, const KernelResources& kernel);

}  // namespace dculab::lower
