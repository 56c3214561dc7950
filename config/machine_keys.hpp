// The keys of a machine file that are no figures; the figures are in sim/hardware/machine_fields.hpp.
#pragma once

#include <array>
#include <tuple>

#include "config/key_list.hpp"
#include "config/machine_file.hpp"
#include "config/stack_keys.hpp"

namespace dculab::config {

// What a figure of a machine rests on.
inline constexpr auto kEvidence = std::to_array<Choice<sim::Evidence>>({{"spec", sim::Evidence::spec},
                                                                        {"measured", sim::Evidence::measured},
                                                                        {"inferred", sim::Evidence::inferred},
                                                                        {"assumed", sim::Evidence::assumed}});

inline constexpr auto kMachineKinds =
    std::to_array<Choice<lower::DeviceKind>>({{"gpu", lower::DeviceKind::gpu}, {"cpu", lower::DeviceKind::cpu}});

inline constexpr auto kScopes =
    std::to_array<Choice<sim::Scope>>({{"compute_unit", sim::Scope::compute_unit}, {"device", sim::Scope::device}});

struct MachineKeys {
  using Target = sim::Machine;
  static constexpr KeyTraits kRequired{.necessity = Necessity::required};
  static constexpr auto keys = std::tuple(
      shaped("schema", read_schema<sim::Machine, kMachineSchema>, {.words = one_of(kMachineSchema)},
             "what kind of file this is", kRequired),
      value("name", &sim::Machine::name, "the file's name", kRequired),
      value("description", &sim::Machine::description, "one line", kRequired),
      word("kind", &sim::Machine::kind, kMachineKinds, "a CPU has no `waves`", kRequired),
      word("vendor", &sim::Machine::vendor, kVendors, "whose stacks (`stacks/*.yaml`) run there", {.absent = "any"}),
      value("isa", &sim::Machine::isa,
            "AMD, Hygon: the instruction set that programs are built for (`gfx928`); `kernel_target` may be another "
            "that stands for it",
            {.absent = "not known"}),
      value(
          "kernel_target", &sim::Machine::kernel_target,
          "GPU: the compiler's target (`gfx906`, `gfx908`, `gfx90a`, `sm_80`, `sm_90`) whose registers and LDS of our "
          "kernels decide the occupancy",
          {.absent = "a formula decides"}),
      value("compute_capability", &sim::Machine::compute_capability,
            "NVIDIA, `\"9.0\"`, `\"10.0\"`: which kernels the libraries run there (FlashAttention's tiles, Hopper's "
            "clusters and copies)",
            {.absent = "no NVIDIA GPU"}));
};

struct LevelKeys {
  using Target = sim::MemoryLevel;
  static constexpr auto keys = std::tuple(
      value("name", &sim::MemoryLevel::name, "`L1`, `L2`, ...; the last is DRAM", {.necessity = Necessity::required}),
      word("scope", &sim::MemoryLevel::scope, kScopes, "who shares one instance", {.necessity = Necessity::required}));
};

}  // namespace dculab::config
