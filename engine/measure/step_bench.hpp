// Measures steps of a grid on the engine: what `bench` and `study --measure` write into a trace.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/checkpoint/model_weights.hpp"
#include "engine/executors/open_executor.hpp"
#include "engine/parallel/division.hpp"
#include "model/trace.hpp"

namespace dculab::engine {

// One step to measure. The model differs from the weights' own in the number of KV heads at most; where it is divided,
// this is the whole, and the trace has the part of a rank.
struct BenchPoint {
  std::string id;
  ModelShape model;
  EngineOptions options;
  Batch batch;          // lengths only
  Division division{};  // CPU: processes that share it, and the threads
};

struct BenchOptions {
  DeviceChoice device{};
  int threads = 0;  // CPU: 0 = all cores
  int repeats = 7;  // rounds through the whole grid
  int warm_up = 2;  // untimed steps of a point in each round
  std::uint64_t seed = 1;
};

using BenchProgress = std::function<void(const std::string& label, double share)>;

// Goes through the whole grid `repeats` times, so that a slow minute of the machine hits every point alike, and takes
// medians. KV heads below the model's own are made by mean pooling. KV blocks hold random values and are scattered
// over the pool, as they are in a server that has run for a while. Throws InputError when a point cannot be run.
[[nodiscard]] Trace measure_steps(const ModelWeights& weights, std::span<const BenchPoint> points,
                                  const BenchOptions& options, const BenchProgress& progress);

}  // namespace dculab::engine
