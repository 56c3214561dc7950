#include "sim/serving/step_confidence.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/plan_step.hpp"
#include "sim/calibration/floor_check.hpp"
#include "sim/serving/step_sample.hpp"

namespace dculab::sim {
namespace {

[[nodiscard]] Seconds time_of_all(SimulatedServer server, const Machine& machine, std::span<const Batch> batches) {
  server.machine = machine;
  const std::vector<Seconds> times = phase_times(server, batches);
  return std::accumulate(times.begin(), times.end(), Seconds());
}

[[nodiscard]] Seconds floor_of_all(const SimulatedServer& server, std::span<const Batch> batches) {
  Seconds floor;
  StepPlan plan;
  for (const Batch& batch : batches) {
    plan.batch = batch;
    const ReplicaDevices devices = devices_that_run(server.deployment, batch);
    const ServedModel served = served_with(server, devices, batch.head_set);
    plan_step_into(plan, part_of_layers(devices, server.machine, served.model, served.options), served.options);
    floor += step_floor(server.machine, plan);
  }
  return floor;
}

// Of steps that one kind of machine runs.
[[nodiscard]] StepConfidence confidence_of(const SimulatedServer& server, std::span<const Batch> batches) {
  const std::vector<StepFeatures> features = served_features(server, batches);
  const std::vector<Batch> priced = thinned(batches, kPricedSteps);
  const auto time = [&](const Machine& machine) { return time_of_all(server, machine, priced); };
  const Spread trusted = spread(server.machine, features, time);
  const double floor = floor_of_all(server, priced) / time(server.machine);
  return {std::max(1 / trusted.factor, std::min(1.0, floor)), trusted.factor, trusted.basis};
}

}  // namespace

std::vector<StepFeatures> served_features(const SimulatedServer& server, std::span<const Batch> batches) {
  std::vector<StepFeatures> features;
  std::map<std::pair<HeadSet, bool>, ModelShape> parts;  // of the devices of a pool, which run one phase
  for (const Batch& batch : batches) {
    const ReplicaDevices devices = devices_that_run(server.deployment, batch);
    const ServedModel served = served_with(server, devices, batch.head_set);
    const bool has_prefill =
        server.deployment.is_disaggregated() &&
        std::ranges::any_of(batch.sequences, [](const SequenceSlice& each) { return each.phase == Phase::prefill; });
    auto [part, is_new] = parts.try_emplace({batch.head_set, has_prefill});
    if (is_new) part->second = part_of_layers(devices, server.machine, served.model, served.options);
    features.push_back(step_features(part->second, served.options, batch));
  }
  return features;
}

StepConfidence step_confidence(const SimulatedServer& server, std::span<const Batch> batches) {
  if (!server.decode_machine) return confidence_of(server, batches);
  SimulatedServer of_one = server;
  of_one.decode_machine.reset();
  std::optional<StepConfidence> both;
  for (const Machine* machine : {&server.machine, &*server.decode_machine}) {
    std::vector<Batch> its;
    for (const Batch& batch : batches)
      if (&machine_that_runs(server, batch) == machine) its.push_back(batch);
    if (its.empty()) continue;
    of_one.machine = *machine;
    const StepConfidence found = confidence_of(of_one, its);
    // The vaguer of the two machines' holds for all.
    both = both ? StepConfidence{std::min(both->low, found.low), std::max(both->high, found.high),
                                 std::max(both->basis, found.basis)}
                : found;
  }
  return *both;
}

}  // namespace dculab::sim
