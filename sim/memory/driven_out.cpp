#include "sim/memory/driven_out.hpp"

#include <algorithm>
#include <cmath>

#include "sim/memory/hit_rate.hpp"

namespace dculab::sim {
namespace {

[[nodiscard]] Seconds shortest_kept(const Machine& machine) {
  Seconds shortest;
  for (const MemoryLevel& level : machine.memory)
    if (level.kept_for > Seconds{})
      shortest = shortest > Seconds{} ? std::min(shortest, level.kept_for) : level.kept_for;
  return shortest;
}

}  // namespace

CacheWarmth::CacheWarmth(const Machine& machine) : kept_for_(shortest_kept(machine)) {}

double CacheWarmth::cold_share(Seconds now) {
  if (kept_for_ == Seconds{}) return 0;
  if (has_run_) cold_ = 1 - (1 - kDrivenOutAgain * cold_) * std::exp(-((now - last_begin_) / kept_for_));
  has_run_ = true;
  last_begin_ = now;
  return cold_;
}

Bytes kept_bytes(const Machine& machine, const Op& op, Bytes footprint) {
  Bytes kept;
  if (op.kind == OpKind::attention_scores) return kept;  // reads what attention has read
  for (const Operand& operand : op.operands()) {
    if (operand.role != OperandRole::weight && operand.role != OperandRole::kv_read) continue;
    const Bytes distance = std::max(footprint, operand.unique);
    double looked_for = 1;  // what no cache of a compute unit's own has
    for (const MemoryLevel& level : machine.memory) {
      if (&level == &machine.dram()) break;
      const bool shared = level.scope == Scope::device;
      const double here = looked_for * stays(distance, (shared ? 1 : machine.compute_units) * level.size);
      if (level.kept_for > Seconds{}) kept += here * operand.unique;
      looked_for -= here;
    }
  }
  return kept;
}

}  // namespace dculab::sim
