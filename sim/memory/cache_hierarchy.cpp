#include "sim/memory/cache_hierarchy.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>

#include "core/error.hpp"

namespace dculab::sim {
namespace {

constexpr int kMostLines = 1 << 28;  // of all caches of a level: 1 GiB

[[nodiscard]] int bits_of_line(const MemoryLevel& level) {
  const auto line = static_cast<std::uint64_t>(level.line.value());
  if (Bytes(static_cast<double>(line)) != level.line || !std::has_single_bit(line))
    throw std::invalid_argument("memory." + level.name + ".line must be a power of two to replay a trace");
  return std::countr_zero(line);
}

[[nodiscard]] AddressRange range_of_line(std::uint64_t line, int line_bits) {
  const std::uint64_t size = std::uint64_t{1} << line_bits;
  return {line << line_bits, (line + 1) << line_bits, size};
}

// Bytes of `range` in `line`. A range with gaps lies within one line.
[[nodiscard]] std::uint64_t bytes_in(const AddressRange& range, const AddressRange& line) {
  const std::uint64_t shared = std::min(range.end, line.end) - std::max(range.begin, line.begin);
  return std::min(shared, range.bytes);
}

}  // namespace

LineRequests& LineRequests::operator+=(const LineRequests& other) {
  lines += other.lines;
  hits += other.hits;
  bytes += other.bytes;
  return *this;
}

LineRequests ReplayedLevel::of(AccessKind kind) const {
  LineRequests sum;
  for (const LineRequests& each : requests[static_cast<std::size_t>(kind)]) sum += each;
  return sum;
}

LineRequests ReplayedLevel::of(OperandRole role) const {
  LineRequests sum;
  for (const auto& kind : requests) sum += kind[static_cast<std::size_t>(role)];
  return sum;
}

LineRequests ReplayedLevel::total() const {
  LineRequests sum = of(AccessKind::load);
  return sum += of(AccessKind::store);
}

CacheHierarchy::CacheHierarchy(const Machine& machine, const RoleMap& roles, SetIndex private_index,
                               SetIndex shared_index)
    : roles_(roles) {
  const std::size_t depth = machine.memory.size();
  for (std::size_t index = 0; index < depth; ++index) {
    const MemoryLevel& from = machine.memory[index];
    const bool is_private = from.scope == Scope::compute_unit;
    Level& level = levels_.emplace_back();
    level.counts.name = from.name;
    level.line_bits = bits_of_line(from);
    // What DRAM delivers at once is kept whole: NVIDIA's L2 fetches two sectors of 32 bytes.
    if (index + 2 == depth) level.line_bits = std::max(level.line_bits, bits_of_line(machine.dram()));
    level.counts.line = Bytes(static_cast<double>(std::uint64_t{1} << level.line_bits));
    if (roles.end() >> level.line_bits >= kNoLine)
      throw std::invalid_argument("the trace spans more than 2^31 lines of " + from.name);
    if (index + 1 == depth) break;
    if (machine.kind == lower::DeviceKind::gpu)
      level.policy = is_private ? StorePolicy::write_through : StorePolicy::write_back_bytes;
    if ((is_private ? machine.compute_units : 1) * (from.size / level.counts.line) > kMostLines)
      throw InputError("memory." + from.name + " of " + machine.name + " has more than " + std::to_string(kMostLines) +
                       " lines in all, too many to replay; make it smaller");
    level.caches.assign(static_cast<std::size_t>(is_private ? machine.compute_units : 1),
                        SetAssociativeCache(from.size.value(), level.counts.line.value(), from.ways,
                                            is_private ? private_index : shared_index));
  }
}

void CacheHierarchy::load(std::size_t depth, int unit, const AddressRange& range, OperandRole role) {
  Level& level = levels_[depth];
  if (level.caches.empty()) return move(level, AccessKind::load, range, role);
  SetAssociativeCache& cache = level.cache(unit);
  const std::uint64_t first = range.begin >> level.line_bits;
  const std::uint64_t end = ((range.end - 1) >> level.line_bits) + 1;
  std::uint64_t hits = 0;
  std::uint64_t missed_from = first;  // lines [missed_from, line) were missed
  const auto fetch = [&](std::uint64_t until) {
    if (missed_from == until) return;
    const std::uint64_t from = missed_from << level.line_bits;
    const std::uint64_t to = until << level.line_bits;
    load(depth + 1, unit, {from, to, to - from}, role);
  };
  for (std::uint64_t line = first; line < end; ++line) {
    const SetAssociativeCache::Touch touch = cache.touch(static_cast<LineNumber>(line), LineState::clean);
    if (touch.written_back != kNoLine) write_back(depth, unit, touch.written_back);
    if (!touch.hit || level.stored_in_part.erase(static_cast<LineNumber>(line)) > 0) continue;
    fetch(line);
    missed_from = line + 1;
    ++hits;
  }
  fetch(end);
  level.counts.at(AccessKind::load, role) += {end - first, hits, Bytes(static_cast<double>(range.bytes))};
}

void CacheHierarchy::store(std::size_t depth, int unit, const AddressRange& range, OperandRole role) {
  Level& level = levels_[depth];
  if (level.caches.empty()) return move(level, AccessKind::store, range, role);
  SetAssociativeCache& cache = level.cache(unit);
  const std::uint64_t first = range.begin >> level.line_bits;
  const std::uint64_t end = ((range.end - 1) >> level.line_bits) + 1;
  const bool through = level.policy == StorePolicy::write_through;
  std::uint64_t hits = 0;
  for (std::uint64_t line = first; line < end; ++line) {
    if (through) {
      hits += cache.touch_if_present(static_cast<LineNumber>(line)) ? 1 : 0;
      continue;
    }
    const SetAssociativeCache::Touch touch = cache.touch(static_cast<LineNumber>(line), LineState::dirty);
    if (touch.written_back != kNoLine) write_back(depth, unit, touch.written_back);
    store_line(depth, unit, line, touch.hit, range, role);
    hits += touch.hit ? 1 : 0;
  }
  level.counts.at(AccessKind::store, role) += {end - first, hits, Bytes(static_cast<double>(range.bytes))};
  if (through) store(depth + 1, unit, range, role);
}

// What becomes of the bytes of a line that a store does not cover.
void CacheHierarchy::store_line(std::size_t depth, int unit, std::uint64_t line, bool hit, const AddressRange& range,
                                OperandRole role) {
  Level& level = levels_[depth];
  const AddressRange whole = range_of_line(line, level.line_bits);
  if (level.policy == StorePolicy::write_back_bytes) {
    const auto known = level.stored_in_part.find(static_cast<LineNumber>(line));
    const bool in_part = known != level.stored_in_part.end();
    if (hit && !in_part) return;
    const std::uint64_t bytes = bytes_in(range, whole) + (in_part ? known->second : 0);
    if (bytes < whole.bytes)
      level.stored_in_part[static_cast<LineNumber>(line)] = bytes;
    else if (in_part)
      level.stored_in_part.erase(known);
    return;
  }
  if (!hit && !range.covers(whole.begin, whole.end)) load(depth + 1, unit, whole, role);
}

void CacheHierarchy::move(Level& dram, AccessKind kind, const AddressRange& range, OperandRole role) {
  const std::uint64_t lines = ((range.end - 1) >> dram.line_bits) + 1 - (range.begin >> dram.line_bits);
  const std::uint64_t bytes = lines << dram.line_bits;
  dram.counts.at(kind, role) += {lines, lines, Bytes(static_cast<double>(bytes))};
}

void CacheHierarchy::write_back(std::size_t depth, int unit, LineNumber line) {
  const AddressRange range = range_of_line(line, levels_[depth].line_bits);
  levels_[depth].stored_in_part.erase(line);
  store(depth + 1, unit, range, roles_.at(range.begin));
}

void CacheHierarchy::write_back() {
  for (std::size_t depth = 0; depth < levels_.size(); ++depth)
    for (std::size_t unit = 0; unit < levels_[depth].caches.size(); ++unit)
      levels_[depth].caches[unit].clean([&](LineNumber line) { write_back(depth, static_cast<int>(unit), line); });
}

std::vector<ReplayedLevel> CacheHierarchy::levels() const {
  std::vector<ReplayedLevel> result;
  for (const Level& level : levels_) result.push_back(level.counts);
  return result;
}

}  // namespace dculab::sim
