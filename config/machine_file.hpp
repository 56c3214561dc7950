// hwmodels/*.yaml <-> sim::Machine. Every figure carries its unit, its kind (spec, measured, assumed) and its source;
// the keys are described in hwmodels/SCHEMA.md.
#pragma once

#include <string>
#include <string_view>

#include "fields/node.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::config {

inline constexpr std::string_view kMachineSchema = "dculab/machine/1";

// What a scenario may call the clock that the file has; the file's `clock_states` have names of their own.
inline constexpr std::string_view kDefaultClock = "default";

// Throws InputError with every problem of the file; what it returns has no problems().
[[nodiscard]] sim::Machine read_machine_file(const std::string& path);
[[nodiscard]] sim::Machine read_machine(const std::string& file, const std::string& yaml);

// A file that reads back as the same machine, as nodes and as YAML. Precondition: every figure that is written has a
// source (see cite); of overheads, of what is sustained and of what is reached only those with a source are written,
// the others are defaults.
[[nodiscard]] Node machine_document(const sim::Machine& machine);
[[nodiscard]] std::string machine_yaml(const sim::Machine& machine);

// Says where the figure under `figure` comes from. Keys: "compute_units", "clock", "peaks.f16.vector",
// "memory.L2.latency", "waves.wave_size", "overheads.kernel_launch", "sustained.dram_bandwidth", "host_link"; and
// "stack.reached.overlap", which stands in the machine's file as what the stack reaches there.
void cite(sim::Machine& machine, const std::string& figure, sim::Evidence evidence, const std::string& source);

}  // namespace dculab::config
