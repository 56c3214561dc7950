// The `deployment` of a scenario: how many devices serve the model, and how they share the work.
#pragma once

#include <vector>

#include "config/key_tree.hpp"
#include "config/map_reader.hpp"
#include "sim/hardware/deployment.hpp"

namespace dculab::config {

void read_deployment(MapReader reader, sim::Deployment& deployment);

// Its keys.
[[nodiscard]] std::vector<FileKey> deployment_keys();

}  // namespace dculab::config
