// A figure of a machine by its key in the machine file, for "what if it were a tenth more".
#pragma once

#include <string_view>

#include "sim/hardware/design.hpp"

namespace dculab::sim {

// Multiplies the figure under `key` ("peaks.f16.matrix", "memory.L2.latency", "stack.reached.overlap"). Counts move by
// one at least; a line by a power of two; shares and fitted times stay within their bounds; what follows compute units,
// clock or channels follows them. False, and nothing is
// changed, for what is no quantity of its own: names, the ways of a cache, wave size, SIMDs and granules; and where
// nothing is stated.
[[nodiscard]] bool scale_figure(Machine& machine, std::string_view key, double factor,
                                Following following = Following::all);

}  // namespace dculab::sim
