// hwmodels/*.yaml <-> sim::Machine. Every figure carries its unit, its kind (spec, measured, assumed) and its source;
// the keys are described in hwmodels/SCHEMA.md.
#pragma once

#include <string>
#include <string_view>

#include "sim/hardware/machine.hpp"

namespace dculab::config {

inline constexpr std::string_view kMachineSchema = "dculab/machine/1";

// Throws InputError with every problem of the file; what it returns has no problems().
[[nodiscard]] sim::Machine read_machine_file(const std::string& path);
[[nodiscard]] sim::Machine read_machine(const std::string& file, const std::string& yaml);

// YAML that reads back as the same machine. Precondition: every figure that is written has a source (see cite);
// of overheads and efficiencies only those with a source are written, the others are defaults.
[[nodiscard]] std::string machine_yaml(const sim::Machine& machine);

// Says where the figure under `key` comes from. Keys: "compute_units", "clock", "peaks.f16.vector",
// "memory.L2.latency", "waves.wave_size", "overheads.kernel_launch", "efficiencies.dram_bandwidth", "host_link".
void cite(sim::Machine& machine, const std::string& key, sim::Evidence evidence, const std::string& source);

}  // namespace dculab::config
