// What one way to run an op's kernel costs (the law: sim/cost/step_price.hpp).
#pragma once

#include <array>

#include "lower/launch.hpp"
#include "sim/compute/parallelism.hpp"
#include "sim/cost/step_price.hpp"
#include "sim/hardware/machine.hpp"
#include "sim/memory/bandwidth.hpp"

namespace dculab::sim {

struct Lowered {
  const Machine& machine;
  const Op& op;
  const lower::Launch& launch;
  Bytes footprint;             // distinct weights and KV of the step
  double norm;                 // of the smooth maximum
  double launches_per_kernel;  // of the program
};

// How far a product is split along k, and who works on the op.
struct Way {
  Parallelism parallel;
  double parts = 1;
};

[[nodiscard]] OpPrice price_way(const Lowered& lowered, const Way& way);

// By a level, to as many busy units.
[[nodiscard]] BytesPerSecond delivered(const Lowered& lowered, const Parallelism& parallel, std::size_t level);

// What keeps the op busy at once: each level, then arithmetic, then latency. A matmul that was measured with weights
// from DRAM takes that time in place of DRAM's and arithmetic's, since both are in it and overlap as they do. What
// arrives beyond the weights, which are the longest unused, are activations: DRAM serves those as any other op's.
// Reads the price's bytes, arithmetic, latency and parallelism.
using Resources = std::array<Seconds, kMaxMemoryLevels + 2>;
[[nodiscard]] Resources resources_of(const Lowered& lowered, const OpPrice& price, const PerLevel<Seconds>& levels);

}  // namespace dculab::sim
