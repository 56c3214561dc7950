// How far the figures of a serving run can be trusted: the steps' times are, within a factor, and all of them are taken
// to be wrong alike, as they are when the cost law or a machine's figure is. The same requests served once more at both
// ends of that factor give the ends of each figure's interval.
//
// Exchanges between the devices of a replica are part of its steps; what the links' own figures may be wrong by is not
// in the factor, and KV transfers between replicas are taken as priced. A calibrated machine's factor is that of single
// steps; errors of theirs that cancel out would make it smaller.
#pragma once

#include <span>
#include <vector>

#include "core/batch.hpp"
#include "sim/calibration/confidence.hpp"
#include "sim/serving/simulated_server.hpp"

namespace dculab::sim {

// 90 % interval of the steps' times, over their prices.
struct StepConfidence {
  double low = 1;
  double high = 1;
  Basis basis = Basis::priors;  // extrapolated when more than one step in a hundred is
};

// Of a server's steps on each of its devices: sizes of the model are those of a device's part.
[[nodiscard]] std::vector<StepFeatures> served_features(const SimulatedServer& server, std::span<const Batch> batches);

// Of steps like `batches`, some of a run's (StepSample): the more, the surer it is whether they extrapolate;
// kPricedSteps of them are priced. Precondition: not empty, and each has sequences.
[[nodiscard]] StepConfidence step_confidence(const SimulatedServer& server, std::span<const Batch> batches);

}  // namespace dculab::sim
