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

// To add the F32 sums of a product's parts, which a second kernel does; none for one part:
//
//   split-k reduction = 2 * parts * m * n * 4 bytes / what the last cache delivers, and DRAM where that does not hold
//   them
//
// Once to write them and once to read them. A kernel whose parts add to y in memory (Launch::adds_in_place) takes as
// many bytes of the last cache: GPTQ's of vLLM has lanes of four columns, two to a compare-and-swap, so each asks twice
// for every line of 16-bit values, to load it and to swap it. Swaps that find another value are tried again; how often,
// no closed form knows: from never to once for each part in flight. Not priced. Splits fill the machine about once, so
// all parts end and write together: there is no arithmetic left to hide it behind, as there is for a matmul's other
// cache traffic (step_price.hpp).
[[nodiscard]] Seconds split_k_reduction_time(const Machine& machine, const lower::Launch& launch, double parts);

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
