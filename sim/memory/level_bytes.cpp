#include "sim/memory/level_bytes.hpp"

#include "sim/memory/hit_rate.hpp"
#include "sim/memory/reuse.hpp"
#include "sim/memory/traffic.hpp"

namespace dculab::sim {
namespace {

// So many other bytes have passed that no cache holds anything of before.
constexpr Bytes kColdDistance{1e30};

}  // namespace

LevelBytes level_bytes(const Machine& machine, const Op& op, const Parallelism& parallel, Bytes footprint,
                       CacheStart start) {
  auto reuse = reuse_of(machine, op, parallel, footprint);
  LevelBytes result;
  for (std::size_t index = 0; index < op.operands().size(); ++index) {
    const Operand& operand = op.operands()[index];
    if (start == CacheStart::cold) reuse[index].first = reuse[index].first_local = kColdDistance;
    Arrivals arrivals = all_requests(reuse[index]);
    double shared_lines_missed = 1;  // of the second visits to a line that two runs share
    for (std::size_t level = 0; level < machine.memory.size(); ++level) {
      const MemoryLevel& memory = machine.memory[level];
      const double rounding = 1 + (line_rounding(op, operand, memory.line) - 1) * shared_lines_missed;
      const Bytes arriving = operand.unique * rounding * arrivals.total();
      result.arriving[level] += arriving;
      if (level == 0 && !is_written(operand.role)) result.read += arriving;
      if (memory.scope == Scope::device) {
        arrivals = misses_of_shared(arrivals, reuse[index], memory.size);
        shared_lines_missed *= 1 - stays(operand.unique, memory.size);
      } else {
        arrivals = misses_of_private(arrivals, reuse[index], memory.size);
      }
    }
  }
  return result;
}

}  // namespace dculab::sim
