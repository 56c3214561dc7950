#include "lower/dculab_gpu/expert_product.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "lower/dculab_gpu/compiled_kernels.hpp"
#include "lower/dculab_gpu/expert_plan.hpp"
#include "lower/dculab_gpu/issued_work.hpp"
#include "lower/dculab_gpu/latent_tiling.hpp"
#include "lower/dculab_gpu/streams.hpp"

namespace dculab::lower::dculab_gpu {
namespace {

[[nodiscard]] double touched(const Op& op) { return std::max(1.0, op.groups.touched); }

[[nodiscard]] ExpertPlan plan_of(const Op& op) {
  return plan_expert_matmul(op.m, op.groups.count, op.weight_format.dtype);
}

}  // namespace

double expert_tiles(const Op& op) {
  if (op.weight == WeightSlot::kv_b_proj) {
    const std::int64_t tokens = op.m / op.groups.count;
    const int rows = absorb_rows(static_cast<int>(std::min<std::int64_t>(tokens, kAbsorbRows)));
    return op.groups.count * std::ceil(static_cast<double>(tokens) / rows);
  }
  return op.groups.tiles.at(static_cast<std::size_t>(std::bit_width(static_cast<unsigned>(plan_of(op).rows)) - 1));
}

int expert_columns(const KernelId& kernel) {
  switch (kernel.kernel) {
    case Kernel::absorb_k:
      return kMostLatentRank;
    case Kernel::absorb_v:
    case Kernel::expert_gemv:
      return kGemvThreads / kernel.wave_size * kGemvColumns;
    case Kernel::expert_gptq_gemv:
      return kGptqGemvColumns;
    case Kernel::expert_gptq_gemm:
      return kGptqGemmColumns;
    default:
      return kGemmColumns;
  }
}

void cut_expert_product(const Op& op, const Device& device, Launch& launch) {
  const KernelId kernel = kernel_of(op, device.waves.wave_size, 1);
  if (op.m == 0 || kernel.kernel == Kernel::none) return;
  const double columns = static_cast<double>(expert_columns(kernel));
  const Tiles before = launch.tiles;
  launch.tiles = {expert_tiles(op), std::ceil(static_cast<double>(op.n) / columns)};
  launch.grid.workgroups = launch.grid.most_workgroups = launch.tiles.rows * launch.tiles.columns;
  launch.parts = 1;  // the kernels of experts never split k
  for (Access& access : launch.accesses()) {
    if (access.role == OperandRole::weight) access.requests = launch.tiles.rows / touched(op);
    if (access.role == OperandRole::activation) access.requests *= launch.tiles.columns / before.columns;
  }
  Arithmetic& arithmetic = launch.arithmetic;
  arithmetic.rows = static_cast<double>(op.m) / launch.tiles.rows;
  arithmetic.stored_values = static_cast<double>(op.n) * static_cast<double>(op.k) * launch.tiles.rows;
  if (launch.product) launch.product->rows = arithmetic.rows;
  if (is_counted(device)) {
    const VectorProduct product = issued_product(op, kernel, launch.tiles.rows);
    arithmetic.issued = FlopCount(product.issued);
    launch.loads_before = product.loads_before;
    launch.overlap = product.wave_by_wave ? Overlap::waves : Overlap::caches;
  }
  if (const auto compiled = compiled_resources(device.kernel_target, kernel)) launch.resources = *compiled;
  launch.workgroups_per_unit = std::max(1, workgroups_per_unit(device.waves, launch.resources));
  launch.waves_per_workgroup = waves_per_workgroup(device.waves, launch.resources);
  add_streams(launch.streams, op, kernel, units_of(op, device), 1);
}

}  // namespace dculab::lower::dculab_gpu
