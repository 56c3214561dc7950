#include "sim/serving/simulated_executor.hpp"

#include <algorithm>
#include <utility>

#include "model/kv/kv_bytes.hpp"

namespace dculab::sim {

bool can_swap(const Machine& machine) {
  return machine.kind == lower::DeviceKind::cpu || machine.host_link.has_value();
}

SimulatedExecutor::SimulatedExecutor(Machine machine, const ModelShape& model, const EngineOptions& options)
    : machine_(std::move(machine)),
      block_bytes_(kv_block_bytes(model, options)),
      pieces_per_block_(2 * model.num_layers()),
      warmth_(machine_) {}

void SimulatedExecutor::copy_blocks(std::span<const BlockCopy> copies) {
  if (copies.empty()) return;
  const Bytes moved = 2.0 * block_bytes_ * static_cast<double>(copies.size());
  const BytesPerSecond bandwidth = machine_.dram().bandwidth * machine_.sustained.dram_bandwidth;
  pending_copies_ += machine_.overheads.kernel_launch + moved / bandwidth;
}

void SimulatedExecutor::swap_blocks(std::span<const BlockCopy> out, std::span<const BlockCopy> in) {
  const auto blocks = static_cast<double>(out.size() + in.size());
  const Bytes moved = block_bytes_ * blocks;
  if (machine_.kind == lower::DeviceKind::cpu)
    pending_swaps_ += 2.0 * moved / (machine_.dram().bandwidth * machine_.sustained.dram_bandwidth);
  else
    pending_swaps_ += blocks * pieces_per_block_ * machine_.overheads.kernel_launch + moved / *machine_.host_link;
}

StepResult SimulatedExecutor::run(const StepPlan& plan) {
  StepResult result;
  result.cold_share = std::max(plan.batch.cold_share, cold_share_);
  price_step(machine_, plan, result.cold_share, price_, beside_);
  copies_ = std::exchange(pending_copies_, {});
  swaps_ = std::exchange(pending_swaps_, {});
  result.duration = copies_ + swaps_ + pauses() + price_.seconds;
  result.op_durations.reserve(plan.ops.size());
  for (const OpPrice& op : price_.ops) result.op_durations.push_back(op.all_executions());
  return result;
}

}  // namespace dculab::sim
