#include "sim/memory/cache_replay.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>

#include "sim/memory/traced_buffers.hpp"
#include "sim/memory/workgroup_dispatcher.hpp"

namespace dculab::sim {
namespace {

[[nodiscard]] AddressRange range_of(const WaveAccess& access) {
  return {access.address, access.address + access.bytes, access.bytes};
}

[[nodiscard]] int bits_of_line(const ReplayedLevel& level) {
  return std::countr_zero(static_cast<std::uint64_t>(level.line.value()));
}

// Takes one instruction of a wave at a time, merges its ranges into as few as the first level would see, and hands
// them to the caches.
class Replayer {
 public:
  Replayer(const Machine& machine, const AddressTrace& trace, const ReplayOptions& options)
      : roles_(trace.buffers), caches_(machine, roles_, options.private_index, options.shared_index) {
    const std::vector<ReplayedLevel> levels = caches_.levels();
    line_bits_ = bits_of_line(levels.front());
    if (options.reuse == ReuseMeasurement::off) return;
    const auto shared = std::find_if(machine.memory.begin(), machine.memory.end(),
                                     [](const MemoryLevel& level) { return level.scope == Scope::device; });
    const ReplayedLevel& level = levels[static_cast<std::size_t>(shared - machine.memory.begin())];
    reuse_line_bits_ = bits_of_line(level);
    reuse_.emplace(static_cast<LineNumber>((roles_.end() >> reuse_line_bits_) + 1), level.line);
  }

  void issue(int unit, std::span<const WaveAccess> accesses) {
    const bool loads = accesses.front().kind == AccessKind::load;
    Coalescing& counts = loads ? result_.loads : result_.stores;
    ++counts.instructions;
    for (const WaveAccess& access : accesses) counts.asked_by_lanes += Bytes(access.lane_bytes);
    counts.lines += loads ? load(unit, accesses) : store(unit, accesses);
  }

  [[nodiscard]] CacheReplay finish() {
    caches_.write_back();
    result_.levels = caches_.levels();
    for (Coalescing* each : {&result_.loads, &result_.stores})
      each->moved = static_cast<double>(each->lines) * result_.levels.front().line;
    if (reuse_) result_.reuse = reuse_->histogram();
    return std::move(result_);
  }

 private:
  [[nodiscard]] std::uint64_t line_of(std::uint64_t address) const { return address >> line_bits_; }

  // Ranges in the same or in neighbouring lines go together, whatever lies between. Returns the lines asked for.
  std::uint64_t load(int unit, std::span<const WaveAccess> accesses) {
    std::uint64_t lines = 0;
    AddressRange run = range_of(accesses.front());
    for (const WaveAccess& access : accesses.subspan(1)) {
      const AddressRange next = range_of(access);
      if (next.begin >= run.begin && line_of(next.begin) <= line_of(run.end - 1) + 1) {
        run = {run.begin, std::max(run.end, next.end), run.bytes + next.bytes};
        continue;
      }
      lines += load(unit, run);
      run = next;
    }
    return lines + load(unit, run);
  }

  // Ranges in the same line go together, but a range with a gap ends with its line: whole lines stay whole.
  std::uint64_t store(int unit, std::span<const WaveAccess> accesses) {
    std::uint64_t lines = 0;
    AddressRange run = range_of(accesses.front());
    for (const WaveAccess& access : accesses.subspan(1)) {
      AddressRange next = range_of(access);
      const std::uint64_t line = line_of(run.end - 1) << line_bits_;
      const std::uint64_t line_end = line + (std::uint64_t{1} << line_bits_);
      if (next.begin < run.end || next.begin >= line_end) {
        lines += store(unit, run);
        run = next;
        continue;
      }
      if (run.begin < line) {
        lines += store(unit, {run.begin, line, line - run.begin});
        run = {line, run.end, run.end - line};
      }
      const std::uint64_t joined_end = std::min(next.end, line_end);
      run = {run.begin, joined_end, run.bytes + joined_end - next.begin};
      if (joined_end == next.end) continue;
      lines += store(unit, run);
      run = {joined_end, next.end, next.end - joined_end};
    }
    return lines + store(unit, run);
  }

  std::uint64_t load(int unit, const AddressRange& run) {
    caches_.load(unit, run, roles_.at(run.begin));
    return count(run);
  }

  std::uint64_t store(int unit, const AddressRange& run) {
    caches_.store(unit, run, roles_.at(run.begin));
    return count(run);
  }

  std::uint64_t count(const AddressRange& run) {
    if (reuse_)
      for (std::uint64_t line = run.begin >> reuse_line_bits_; line <= (run.end - 1) >> reuse_line_bits_; ++line)
        reuse_->touch(static_cast<LineNumber>(line));
    return line_of(run.end - 1) + 1 - line_of(run.begin);
  }

  RoleMap roles_;
  CacheHierarchy caches_;
  int line_bits_ = 0;
  int reuse_line_bits_ = 0;
  std::optional<ReuseDistances> reuse_;
  CacheReplay result_;
};

}  // namespace

CacheReplay replay_cache(const Machine& machine, const AddressTrace& trace, const ReplayOptions& options) {
  if (const std::vector<std::string> found = problems(trace); !found.empty())
    throw std::invalid_argument(found.front());
  if (options.workgroups_per_unit < 1)
    throw std::invalid_argument("no workgroup of " + trace.kernel + " fits on a compute unit of " + machine.name);
  Replayer replayer(machine, trace, options);
  WorkgroupDispatcher dispatcher(trace, machine.compute_units, options.workgroups_per_unit);
  dispatcher.run([&replayer](int unit, std::span<const WaveAccess> accesses) { replayer.issue(unit, accesses); });
  return replayer.finish();
}

}  // namespace dculab::sim
