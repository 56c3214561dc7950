#include "sim/simulated_executor.hpp"

#include <utility>

namespace dculab::sim {

SimulatedExecutor::SimulatedExecutor(Machine machine, const ModelShape& model, const EngineOptions& options)
    : machine_(std::move(machine)),
      block_bytes_(kv_bytes_per_token(model, options.kv_cache_dtype) * options.block_size) {}

void SimulatedExecutor::copy_blocks(std::span<const BlockCopy> copies) {
  if (copies.empty()) return;
  const Bytes moved = 2.0 * block_bytes_ * static_cast<double>(copies.size());
  const BytesPerSecond bandwidth = machine_.dram().bandwidth * machine_.efficiencies.dram_bandwidth;
  pending_copies_ += machine_.overheads.kernel_launch + moved / bandwidth;
}

StepResult SimulatedExecutor::run(const StepPlan& plan) {
  price_step(machine_, plan, price_);
  StepResult result;
  result.duration = std::exchange(pending_copies_, {}) + price_.seconds;
  result.op_durations.reserve(plan.ops.size());
  for (const OpPrice& op : price_.ops) result.op_durations.push_back(op.all_executions());
  return result;
}

}  // namespace dculab::sim
