// Reads what a scenario works on: a single step, or requests and what their users are promised.
#pragma once

#include "config/map_reader.hpp"
#include "config/scenario_file.hpp"

namespace dculab::config {

void read_workload(MapReader reader, Workload& workload);
void read_slo(MapReader reader, ServiceLevel& slo);

}  // namespace dculab::config
