// What a reader of the measurements must know: how each figure came about, and what disturbed it.
#pragma once

#include <string>

#include "engine/probe/host_measurements.hpp"

namespace dculab::engine {

// Others using more than this share of the CPUs while we measure gets a warning.
inline constexpr double kTolerableForeignLoad = 0.03;

// Fills the reach of the last cache: the largest working set of the sweep that one thread reads at a rate nearer,
// by ratio, to that cache's than to DRAM's. Other tenants on a shared cache make it smaller than the cache.
void find_reach(HostMeasurements& host);

// Says that others used the machine while it was measured; empty where that was little.
[[nodiscard]] std::string busy_warning(const HostMeasurements& host);

// Fills `how` and appends to `notes`, from the figures alone.
void explain(HostMeasurements& host);

}  // namespace dculab::engine
