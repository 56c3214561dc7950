// The `deployment` of a scenario: how many devices serve the model, and how they share the work.
#pragma once

#include <string>
#include <vector>

#include "config/key_tree.hpp"
#include "config/map_reader.hpp"
#include "sim/hardware/deployment.hpp"

namespace dculab::config {

// `decode_machine`: a name or a file where decode replicas are of another kind of machine; left alone otherwise.
void read_deployment(MapReader reader, sim::Deployment& deployment, std::string& decode_machine);

// Its keys.
[[nodiscard]] std::vector<FileKey> deployment_keys();

}  // namespace dculab::config
