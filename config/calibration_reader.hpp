// What calibration left in a machine file for later predictions: sim::Calibration.
#pragma once

#include <vector>

#include "config/key_tree.hpp"
#include "config/map_reader.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::config {

// Not figures of the machine but of the fit: they need no source.
void read_calibration(MapReader reader, sim::Calibration& calibration);

// Its keys.
[[nodiscard]] std::vector<FileKey> calibration_keys();

}  // namespace dculab::config
