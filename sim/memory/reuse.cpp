#include "sim/memory/reuse.hpp"

#include <algorithm>
#include <cmath>

#include "sim/memory/traffic.hpp"

namespace dculab::sim {
namespace {

// Tiles of w and of x that the workgroups in flight cover, as square a patch as the grid allows.
struct Patch {
  double rows = 1;     // workgroups that share a tile of w
  double columns = 1;  // workgroups that share a tile of x
};

[[nodiscard]] Patch patch_of(double row_tiles, double column_tiles, double concurrent) {
  Patch patch;
  patch.rows = std::clamp(std::sqrt(concurrent), 1.0, std::max(1.0, row_tiles));
  patch.columns = std::clamp(concurrent / patch.rows, 1.0, std::max(1.0, column_tiles));
  patch.rows = std::clamp(concurrent / patch.columns, 1.0, std::max(1.0, row_tiles));
  return patch;
}

[[nodiscard]] Patch patch_of(const lower::Launch& launch, const Parallelism& parallel) {
  const auto [row_tiles, column_tiles] = launch.tiles;
  if (!launch.product) return {};
  return patch_of(row_tiles, column_tiles, std::min(parallel.concurrent, row_tiles * column_tiles));
}

[[nodiscard]] double concurrent_sharers(const lower::Launch& launch, const lower::Access& access,
                                        const Parallelism& parallel, const Patch& patch) {
  if (!launch.product) return std::clamp(access.requests, 1.0, std::max(1.0, parallel.concurrent));
  return access.role == OperandRole::weight ? patch.rows : patch.columns;
}

struct Footprints {
  Bytes workgroup;
  Bytes in_flight;
  Bytes largest_read;
};

[[nodiscard]] Footprints footprints(const lower::Launch& launch, const Parallelism& parallel, const Patch& patch) {
  Footprints result;
  for (const lower::Access& access : launch.accesses()) {
    if (is_written(access.role)) continue;
    const Bytes share = access.unique * access.requests / parallel.workgroups;
    result.workgroup += share;
    const Bytes in_flight = share * (parallel.concurrent / concurrent_sharers(launch, access, parallel, patch));
    result.in_flight += std::min(access.unique, in_flight);
    result.largest_read = std::max(result.largest_read, access.unique);
  }
  return result;
}

// Whoever is behind finds in the cache what the first has waited for, and catches up: workgroups that go by slabs are
// no further apart than what is under way.
[[nodiscard]] double drift_of(const lower::Launch& launch) {
  return launch.slabs == 0 ? kDrift : std::min(kDrift, (launch.slabs_ahead + 1) / launch.slabs);
}

void set_first_touch(Reuse& reuse, double units, const Op& op, const lower::Access& access, Bytes step_footprint) {
  switch (access.role) {
    case OperandRole::weight:
    case OperandRole::kv_read:
    case OperandRole::kv_write:
      reuse.first = std::max(step_footprint, access.unique);
      reuse.local_share = 1;
      break;
    case OperandRole::block_table:
      reuse.first = std::max(step_footprint / std::max(1, op.count), access.unique);
      reuse.local_share = 1 / units;
      break;
    case OperandRole::activation:
      reuse.first = 2 * access.unique;
      reuse.local_share = 1 / units;
      break;
    case OperandRole::output:
      reuse.first = 2 * access.unique;
      reuse.local_share = 1;
      break;
  }
  reuse.first_local = reuse.first / units;
}

}  // namespace

std::array<Reuse, kMaxOperands> reuse_of(const Machine& machine, const Op& op, const lower::Launch& launch,
                                         const Parallelism& parallel, Bytes step_footprint) {
  const Patch patch = patch_of(launch, parallel);
  const Footprints footprint = footprints(launch, parallel, patch);
  std::array<Reuse, kMaxOperands> result;
  for (int index = 0; index < launch.num_accesses; ++index) {
    const lower::Access& access = launch.accesses()[static_cast<std::size_t>(index)];
    Reuse& reuse = result[static_cast<std::size_t>(index)];
    reuse.requests = std::max(1.0, access.requests);
    reuse.concurrent = concurrent_sharers(launch, access, parallel, patch);
    reuse.compute_units = machine.compute_units;
    const bool swept = launch.product && access.unique < footprint.largest_read;
    reuse.own = footprint.workgroup + (swept ? access.unique : Bytes{});
    reuse.together = drift_of(launch) * footprint.in_flight;
    reuse.temporal = footprint.in_flight + (swept ? access.unique : Bytes{});
    set_first_touch(reuse, machine.compute_units, op, access, step_footprint);
    if (!launch.comes_back) reuse.local_share = 0;
  }
  return result;
}

}  // namespace dculab::sim
