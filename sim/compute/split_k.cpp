#include "sim/compute/split_k.hpp"

#include <algorithm>
#include <cmath>

#include "sim/compute/kernel_name.hpp"
#include "sim/memory/bandwidth.hpp"

namespace dculab::sim {
namespace {

constexpr double kSmallestSplit = 256;  // values of k below which a GEMM library does not split

}  // namespace

bool has_tiles(const Machine& machine, const Op& op) {
  const int rows_without = machine.kernel_target.empty() ? 1 : kGemvMaxRows;
  return machine.kind == MachineKind::gpu && op.kind == OpKind::matmul && op.m > rows_without;
}

double most_parts(const Op& op) { return std::max(1.0, std::floor(static_cast<double>(op.k) / kSmallestSplit)); }

Parallelism split_along_k(const Machine& machine, const Parallelism& whole, double parts) {
  const double units = machine.compute_units;
  Parallelism result = whole;
  result.workgroups = whole.workgroups * parts;
  result.rounds = std::ceil(result.workgroups / (units * whole.workgroups_per_unit));
  result.concurrent = result.workgroups / result.rounds;
  result.active_units = result.workgroups / std::ceil(result.workgroups / units);
  return result;
}

Seconds adding_time(const Machine& machine, const Op& op, double parts) {
  if (parts <= 1) return {};
  const std::size_t dram = machine.memory.size() - 1;
  const Bytes sums = storage(Dtype::f32, parts * static_cast<double>(op.m) * static_cast<double>(op.n));
  const auto moved = [&](std::size_t level) { return 2.0 * sums / deliverable(machine, level, machine.compute_units); };
  if (dram == 0) return moved(dram);
  return sums <= machine.memory[dram - 1].size ? moved(dram - 1) : std::max(moved(dram - 1), moved(dram));
}

}  // namespace dculab::sim
