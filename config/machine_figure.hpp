// Figures of a machine that a scenario changes: "memory.DRAM.bandwidth: 2 TB/s", or relative to the machine's own,
// "clock: 1.2 x", or by a name: "clock: boost".
#pragma once

#include <span>

#include "config/map_reader.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::config {

// Each node is a figure's key with its value. Reports unknown keys, wrong units, values out of range and what makes the
// machine unusable. What follows compute units, clock and channels follows them, unless it is set too; `clock` may be
// "default" or a state of the file. Machine::redesign says what moved. The changed figures' source is the scenario, and
// they count as assumed.
void set_figures(sim::Machine& machine, std::span<const Node> figures, ProblemList& problems);

}  // namespace dculab::config
