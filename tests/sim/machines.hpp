// Three small machine descriptions for tests: an MI50, an A100 and a 2-core server CPU. Figures: spec sheets and
// measurements published for these devices, rounded; hwmodels/ has the sourced ones.
#pragma once

#include "sim/hardware/machine.hpp"

namespace dculab::sim::test {

inline constexpr BytesPerSecond kGBs{1e9};
inline constexpr FlopsPerSecond kTflops{1e12};

inline Machine mi50_like() {
  Machine machine;
  machine.name = "mi50-like";
  machine.kind = lower::DeviceKind::gpu;
  machine.compute_units = 60;
  machine.clock = Hertz(1.725e9);
  machine.peaks = {
      {Dtype::f32, {13.4 * kTflops, {}}}, {Dtype::f16, {26.8 * kTflops, {}}}, {Dtype::int8, {53.6 * kTflops, {}}}};
  machine.memory = {
      {"L1", Scope::compute_unit, 16 * kKiB, Bytes(64), 6600 * kGBs, Seconds(75e-9), 0, {}},
      {"L2", Scope::device, 4 * kMiB, Bytes(64), 1766 * kGBs, Seconds(150e-9), 0, {}},
      {"DRAM", Scope::device, 32 * kGiB, Bytes(64), 1024 * kGBs, Seconds(350e-9), 0, {}},
  };
  machine.waves.lds_per_unit = 64 * kKiB;
  machine.overheads.kernel_launch = Seconds(3e-6);
  return machine;
}

inline Machine a100_like() {
  Machine machine = mi50_like();
  machine.name = "a100-like";
  machine.compute_units = 108;
  machine.clock = Hertz(1.41e9);
  machine.peaks = {{Dtype::f32, {19.5 * kTflops, {}}},
                   {Dtype::f16, {78 * kTflops, 312 * kTflops}},
                   {Dtype::bf16, {39 * kTflops, 312 * kTflops}},
                   {Dtype::int8, {78 * kTflops, 624 * kTflops}}};
  machine.memory = {
      {"L1", Scope::compute_unit, 128 * kKiB, Bytes(128), 19500 * kGBs, Seconds(26e-9), 0, {}},
      {"L2", Scope::device, 40 * kMiB, Bytes(128), 5300 * kGBs, Seconds(200e-9), 0, {}},
      {"DRAM", Scope::device, 80 * kGiB, Bytes(64), 2039 * kGBs, Seconds(404e-9), 0, {}},
  };
  machine.compute_capability = "8.0";
  machine.waves = {.wave_size = 32,
                   .simds_per_unit = 4,
                   .max_waves_per_simd = 16,
                   .vgprs_per_lane = 512,
                   .vgpr_granule = 8,
                   .max_workgroups_per_unit = 32,
                   .lds_per_unit = 164 * kKiB,
                   .lds_granule = Bytes(128)};
  return machine;
}

// An A100 with Hopper's clusters, copy engine and shared memory.
inline Machine hopper_like() {
  Machine machine = a100_like();
  machine.name = "hopper-like";
  machine.compute_capability = "9.0";
  machine.waves.lds_per_unit = 228 * kKiB;
  return machine;
}

inline Machine cpu_like() {
  Machine machine;
  machine.name = "cpu-like";
  machine.kind = lower::DeviceKind::cpu;
  machine.compute_units = 2;
  machine.clock = Hertz(3e9);
  machine.peaks = {{Dtype::f32, {0.34 * kTflops, {}}}};
  machine.memory = {
      {"L1", Scope::compute_unit, 32 * kKiB, Bytes(64), 380 * kGBs, Seconds(1.7e-9), 0, {}},
      {"L2", Scope::compute_unit, 1 * kMiB, Bytes(64), 250 * kGBs, Seconds(5e-9), 0, {}},
      {"L3", Scope::device, 32 * kMiB, Bytes(64), 59 * kGBs, Seconds(40e-9), 0, 28 * kGBs},
      {"DRAM", Scope::device, 16 * kGiB, Bytes(64), 31 * kGBs, Seconds(160e-9), 0, 17 * kGBs},
  };
  machine.overheads.kernel_launch = Seconds(2e-6);
  return machine;
}

}  // namespace dculab::sim::test
