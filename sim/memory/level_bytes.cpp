#include "sim/memory/level_bytes.hpp"

#include <algorithm>

#include "sim/memory/hit_rate.hpp"
#include "sim/memory/reuse.hpp"
#include "sim/memory/stream_bytes.hpp"
#include "sim/memory/traffic.hpp"

namespace dculab::sim {
namespace {

// Of the second visits to a line that two runs share, those that a shared cache does not answer.
[[nodiscard]] double shared_lines_missed(const lower::Access& access, const Reuse& reuse, Bytes cache) {
  const double last_of_block = 1.0 / access.runs_in_step;
  return (1 - last_of_block) * (1 - hit_probability(reuse.together, cache)) +
         last_of_block * (1 - hit_probability(access.unique, cache));
}

void add_spills(const Machine& machine, const lower::Spills& spills, const Parallelism& parallel, LevelBytes& result) {
  Bytes arriving = spills.moved;
  for (std::size_t level = 0; level < machine.memory.size(); ++level) {
    const MemoryLevel& memory = machine.memory[level];
    const double sharing = memory.scope == Scope::device ? 1 : parallel.active_units;
    result.arriving[level] += arriving;
    arriving *= 1 - hit_probability(parallel.concurrent / sharing * spills.between, memory.size);
  }
}

}  // namespace

LevelBytes level_bytes(const Machine& machine, const Op& op, const lower::Launch& launch, const Parallelism& parallel,
                       Bytes footprint, CacheStart start) {
  if (launch.streams.count > 0) return stream_bytes(machine, op, launch, footprint, start);
  auto reuse = reuse_of(machine, op, launch, parallel, footprint);
  LevelBytes result;
  for (std::size_t index = 0; index < launch.accesses().size(); ++index) {
    const lower::Access& access = launch.accesses()[index];
    if (start == CacheStart::cold) reuse[index].first = reuse[index].first_local = kColdDistance;
    Arrivals arrivals = all_requests(reuse[index]);
    double missed = 1;  // of the second visits to lines that two runs share
    for (std::size_t level = 0;; ++level) {
      const double rounding =
          access.is_scattered ? 1 + (line_rounding(access, arriving_line(machine, level)) - 1) * missed : 1;
      const Bytes arriving = access.unique * rounding * arrivals.total();
      result.arriving[level] += arriving;
      if (level == 0 && !is_written(access.role)) result.read += arriving;
      if (level + 1 == machine.memory.size()) break;  // DRAM misses nothing
      const MemoryLevel& memory = machine.memory[level];
      if (memory.scope == Scope::device) {
        arrivals = misses_of_shared(arrivals, reuse[index], memory.size);
        if (access.is_scattered) missed *= shared_lines_missed(access, reuse[index], memory.size);
      } else {
        arrivals = misses_of_private(arrivals, reuse[index], memory.size);
      }
    }
  }
  if (launch.spills.moved > Bytes{}) add_spills(machine, launch.spills, parallel, result);
  return result;
}

}  // namespace dculab::sim
