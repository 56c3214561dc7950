// What GPU kernels touch, recorded here and replayed through a machine's caches, beside what the closed form says.
#pragma once

#include <string>
#include <vector>

#include "config/scenario_file.hpp"
#include "engine/measure/step_bench.hpp"
#include "sim/memory/replay_comparison.hpp"

namespace dculab::study {

// An op of a scenario's step, on its first machine.
struct OpToReplay {
  config::Scenario scenario;
  std::string op;
};

struct ReplayedOp {
  int kv_heads = 0;
  int block_size = 0;
  sim::ReplayComparison comparison;
};

// One after the other. Throws InputError for machines that are no GPUs, and for what our kernels do not do.
[[nodiscard]] std::vector<ReplayedOp> replay_ops(const std::vector<OpToReplay>& ops, sim::ReuseMeasurement reuse,
                                                 const engine::BenchProgress& progress);

}  // namespace dculab::study
