// How the devices of a replica can share a model.
#pragma once

#include <string>
#include <vector>

#include "model/model_shape.hpp"
#include "sim/hardware/deployment.hpp"

namespace dculab::study {

// The layouts of a replica of up to `most` devices, fewer devices first, then fewer stages. Each could be refused by
// sim::problems().
[[nodiscard]] std::vector<sim::ReplicaDevices> replica_layouts(const ModelShape& model, int most);

// "TP 4", "TP 2 x PP 2", "EP 8", "EP 8, TP 2"
[[nodiscard]] std::string layout_text(const sim::ReplicaDevices& devices);

}  // namespace dculab::study
