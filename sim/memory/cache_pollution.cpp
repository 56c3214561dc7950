#include "sim/memory/cache_pollution.hpp"

#include <algorithm>
#include <cmath>

#include "sim/memory/hit_rate.hpp"

namespace dculab::sim {
namespace {

[[nodiscard]] Seconds shortest_kept(const Machine& machine) {
  Seconds shortest;
  for (const MemoryLevel& level : machine.memory)
    if (level.retention_time > Seconds{})
      shortest = shortest > Seconds{} ? std::min(shortest, level.retention_time) : level.retention_time;
  return shortest;
}

// A step's new tokens write their K and V themselves before attention reads them.
[[nodiscard]] double share_from_before(const Op& op, const Operand& operand) {
  if (operand.role != OperandRole::kv_read || op.attention.context_tokens <= 0) return 1;
  return std::max(0.0, 1 - op.attention.query_tokens / op.attention.context_tokens);
}

}  // namespace

CacheWarmth::CacheWarmth(const Machine& machine) : retention_time_(shortest_kept(machine)) {}

double CacheWarmth::cold_share(Seconds now) {
  if (has_run_) cold_ = cold_share_after(cold_, now - last_begin_);
  has_run_ = true;
  last_begin_ = now;
  return cold_;
}

double CacheWarmth::cold_share_after(double before, Seconds waited) const {
  if (retention_time_ == Seconds{}) return 0;
  return 1 - (1 - kEvictedAgain * before) * std::exp(-(waited / retention_time_));
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
      const double here = looked_for * hit_probability(distance, (shared ? 1 : machine.compute_units) * level.size);
      if (level.retention_time > Seconds{}) kept += here * share_from_before(op, operand) * operand.unique;
      looked_for -= here;
    }
  }
  return kept;
}

}  // namespace dculab::sim
