// Some of the steps of a simulation, to be priced again on another machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/batch.hpp"
#include "core/serving_loop.hpp"
#include "sim/serving/simulated_server.hpp"

namespace dculab::sim {

inline constexpr std::size_t kSampledSteps = 1024;  // of a run: enough to tell whether its steps extrapolate
inline constexpr std::size_t kPricedSteps = 16;     // of these: enough for their input sensitivity

// Every n-th step, n the power of two with which at most `most` are kept.
class StepSample {
 public:
  // Precondition: most is even and at least 2.
  explicit StepSample(std::size_t most) : most_(most) {}

  void add(const ServedStep& step);

  // Their slices and how cold they began; without tokens and block tables.
  [[nodiscard]] const std::vector<Batch>& batches() const { return batches_; }

 private:
  std::size_t most_;
  std::uint64_t seen_ = 0;
  std::uint64_t every_ = 1;
  std::vector<Batch> batches_;
};

// At most `most` of them, equally far apart. Precondition: most > 0.
[[nodiscard]] std::vector<Batch> thinned(std::span<const Batch> batches, std::size_t most);

// Who runs such a step: of a deployment with pools those of its phase.
[[nodiscard]] ReplicaDevices devices_that_run(const Deployment& deployment, const Batch& batch);

[[nodiscard]] const Machine& machine_that_runs(const SimulatedServer& server, const Batch& batch);

// How long the batches with prefill take together, and those without, where there are any: what decides about the first
// token, and about the others. On a replica of the server that has nothing else to do, without block copies, swaps and
// transfers to other replicas.
[[nodiscard]] std::vector<Seconds> phase_times(const SimulatedServer& server, std::span<const Batch> batches);

}  // namespace dculab::sim
