// Reads what a scenario works on: a single step, or requests and what their users are promised.
#pragma once

#include <vector>

#include "config/key_tree.hpp"
#include "config/map_reader.hpp"
#include "config/scenario_file.hpp"

namespace dculab::config {

void read_workload(MapReader reader, Workload& workload);
void read_slo(MapReader reader, ServiceLevel& slo);

// Their keys.
[[nodiscard]] std::vector<FileKey> workload_keys();
[[nodiscard]] std::vector<FileKey> slo_keys();

}  // namespace dculab::config
