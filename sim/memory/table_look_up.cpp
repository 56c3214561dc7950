#include "sim/memory/table_look_up.hpp"

#include <algorithm>

namespace dculab::sim {
namespace {

constexpr Bytes kEntry{4};

}  // namespace

Seconds table_look_up(const Machine& machine, double entries) {
  const Seconds arithmetic = machine.stack.reached.block_lookup;
  if (machine.kind != lower::DeviceKind::gpu) return arithmetic;
  const MemoryLevel& first = machine.memory.front();
  const MemoryLevel& next = machine.memory[machine.memory.size() > 1 ? 1 : 0];
  const double new_lines = std::min(1.0, entries * kEntry / first.line);
  return first.latency + new_lines * std::max(Seconds{}, next.latency - first.latency) + arithmetic;
}

}  // namespace dculab::sim
