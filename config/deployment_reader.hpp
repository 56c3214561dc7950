// The `deployment` of a scenario: how many devices serve the model, and how they share the work.
#pragma once

#include "config/map_reader.hpp"
#include "sim/hardware/deployment.hpp"

namespace dculab::config {

void read_deployment(MapReader reader, sim::Deployment& deployment);

}  // namespace dculab::config
