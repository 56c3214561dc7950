// Figures of a machine that a scenario changes: "memory.DRAM.bandwidth: 2 TB/s", or relative to the machine's own,
// "clock: 1.2 x".
#pragma once

#include <span>

#include "config/map_reader.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::config {

// Each node is a figure's key with its value. Reports unknown keys, wrong units, values out of range and what makes the
// machine unusable; figures stay independent of each other: another clock has no other peaks. The changed figures'
// source is the scenario, and they count as assumed.
void set_figures(sim::Machine& machine, std::span<const Node> figures, ProblemList& problems);

}  // namespace dculab::config
