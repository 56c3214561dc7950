// What kernels are chosen by and built for: the parts of a machine that decide how an op is run, not what it costs.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/units.hpp"

namespace dculab::lower {

enum class DeviceKind : std::uint8_t { gpu, cpu };

// Registers and scratchpad of a compute unit: what limits the waves in flight. GPU only.
struct WaveResources {
  int wave_size = 64;
  int simds_per_unit = 4;
  int max_waves_per_simd = 10;
  int vgprs_per_lane = 256;  // register file, per SIMD lane
  int vgpr_granule = 4;
  int max_workgroups_per_unit = 16;
  Bytes lds_per_unit;  // LDS or shared memory
  Bytes lds_granule{512};
};

enum class Vendor : std::uint8_t { other, nvidia, amd, hygon };
[[nodiscard]] constexpr std::string_view name(Vendor vendor) {
  constexpr std::array<std::string_view, 4> kNames{"other", "nvidia", "amd", "hygon"};
  return kNames[static_cast<std::size_t>(vendor)];
}

struct Device {
  DeviceKind kind = DeviceKind::gpu;
  Vendor vendor = Vendor::other;
  std::string isa;  // AMD, Hygon: the instruction set that programs are built for, "gfx928"; empty where not known
  // GPU: the compiler's name of the target whose kernels' registers and LDS are used here ("gfx906"); empty where no
  // kernel of ours is compiled for anything like it.
  std::string kernel_target;
  std::string compute_capability;   // NVIDIA: of the GPU, "9.0"; empty elsewhere
  int compute_units = 0;            // CUs, SMs or CPU threads
  bool has_matrix_cores = false;    // for values of 16 bits
  WaveResources waves;              // GPU only
  std::optional<int> peers;         // other devices of the server; absent: no limit is known
  std::optional<int> direct_peers;  // of these, reached in one hop: by a link of their own or a switch; absent: none
};

[[nodiscard]] inline bool is_nvidia(const Device& device) { return !device.compute_capability.empty(); }

// Thread blocks form clusters, and a copy engine (TMA) fetches tiles while the warps that multiply do nothing else.
[[nodiscard]] inline bool is_hopper(const Device& device) { return device.compute_capability == "9.0"; }

}  // namespace dculab::lower
