// Reads what a scenario works on: a single step, or requests and what their users are promised.
#pragma once

#include "config/map_reader.hpp"
#include "config/scenario_file.hpp"

namespace dculab::config {

inline constexpr double kLargestBatch = 1 << 16;    // sequences
inline constexpr double kLongestContext = 1 << 24;  // tokens

void read_workload(MapReader reader, Workload& workload);
void read_slo(MapReader reader, ServiceLevel& slo);

}  // namespace dculab::config
