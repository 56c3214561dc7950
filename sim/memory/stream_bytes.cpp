#include "sim/memory/stream_bytes.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/memory/hit_rate.hpp"
#include "sim/memory/reuse.hpp"
#include "sim/memory/set_associative_cache.hpp"
#include "sim/memory/traffic.hpp"

namespace dculab::sim {
namespace {

using lower::RestOfLine;
using lower::Stream;

constexpr Bytes kInstruction{1024};  // that a wave of 64 lanes asks for with one load

// Where the workgroups of a kernel run.
struct Placement {
  double units = 1;
  double per_unit = 1;    // at a time
  double concurrent = 1;  // on all of them

  Placement(const Machine& machine, double workgroups, double most_per_unit) : units(machine.compute_units) {
    per_unit = std::clamp(workgroups / units, 1.0, most_per_unit);
    concurrent = workgroups / std::ceil(workgroups / (units * most_per_unit));
  }

  // Of the workgroups that ask for a byte, those that run at the same time.
  [[nodiscard]] double sharers(const Stream& stream) const {
    return std::clamp(concurrent / stream.stride, 1.0, stream.workgroups);
  }

  // How often some unit begins to ask for a byte: co-residents count once.
  [[nodiscard]] double visits(const Stream& stream) const {
    if (stream.stride == 1) {
      const double full = std::floor(stream.workgroups / (units * per_unit));
      return full * units + std::min(units, stream.workgroups - full * units * per_unit);
    }
    // Co-residents are `units` apart, and only those within the span of the sharers can be among them.
    const auto stride = static_cast<long>(stream.stride);
    const double apart = static_cast<double>(stride / std::gcd(static_cast<long>(units), stride));
    const double within = std::min(per_unit, stream.stride * stream.workgroups / units);
    return stream.workgroups / std::max(1.0, within / apart);
  }
};

// What is read.
struct Footprint {
  Bytes workgroup;
  Bytes in_flight;
  Bytes largest;
  double distinct = 1;  // workgroups that would ask for as much as those in flight do if they shared nothing

  Footprint(const lower::Streams& streams, const Placement& place) {
    for (const Stream& stream : streams.all()) {
      if (is_written(stream.role)) continue;
      const Bytes share = stream.unique * stream.workgroups / streams.workgroups;
      workgroup += share;
      in_flight += std::min(stream.unique, share * (place.concurrent / place.sharers(stream)));
      largest = std::max(largest, stream.unique);
    }
    if (workgroup > Bytes{}) distinct = in_flight / workgroup;
  }
};

// Asks for each byte of a stream that reach a level.
struct Asks {
  double first = 1;
  double others = 0;        // of other workgroups
  double again = 0;         // of those that asked before
  double rest_of_line = 1;  // share of the later pieces of a line that are asked for at this level

  [[nodiscard]] double total() const { return first + others + again; }
};

// One stream on its way down the levels.
class Descent {
 public:
  Descent(const Stream& stream, const Placement& place, const Footprint& footprint)
      : stream_(stream), place_(place), footprint_(footprint) {
    asks_.others = stream.workgroups - 1;
    asks_.again = stream.workgroups * (stream.asks - 1);
  }

  [[nodiscard]] const Asks& asks() const { return asks_; }

  // Of the bytes that arrive in pieces of `line`, over those that are asked for.
  [[nodiscard]] double rounding(Bytes line) const {
    double lines = 1;
    if (stream_.rest != RestOfLine::same_workgroup && stream_.run > Bytes{}) lines = run_rounding(stream_.run, line);
    if (stream_.rest == RestOfLine::same_workgroup) lines = visits_to(line);
    double whole = 1;  // where the rest is found; of rows that lie apart, what is between them comes along
    if (stream_.rest == RestOfLine::neighbours && stream_.pitch > stream_.run)
      whole = std::min(lines, stream_.pitch / stream_.run);
    return whole + (lines - whole) * asks_.rest_of_line;
  }

  void pass_private(const MemoryLevel& cache) {
    if (is_written(stream_.role) || is_asked_once()) return;
    const Bytes capacity = cache.size;
    const double visits = place_.visits(stream_);
    const Bytes residents = place_.per_unit * (stream_.between > Bytes{} ? stream_.between : footprint_.workgroup);
    if (stream_.workgroups > 1) asks_.others = std::min(asks_.others, others_missed(cache, visits, residents));
    if (asks_.again > 0) asks_.again *= 1 - hit_probability(residents, capacity);
    if (stream_.rest != RestOfLine::same_workgroup) return;
    const double distinct = place_.per_unit * std::min(1.0, visits / stream_.workgroups);
    const Bytes step = std::max(1.0, distinct) * step_in(cache.line);
    asks_.rest_of_line *= 1 - hit_probability(step, capacity * reachable(cache));
  }

  void pass_shared(const MemoryLevel& cache, Bytes first_distance) {
    const Bytes capacity = cache.size;
    asks_.first *= 1 - hit_probability(first_distance, capacity);
    if (is_asked_once()) return;
    const double together_missed = 1 - hit_probability(kDrift * footprint_.in_flight, capacity);
    if (asks_.others > 0) asks_.others = others_missed(capacity, together_missed);
    if (asks_.again > 0)
      asks_.again *=
          1 - hit_probability(std::min(footprint_.distinct * stream_.between, footprint_.in_flight), capacity);
    if (stream_.rest == RestOfLine::neighbours) asks_.rest_of_line *= together_missed;
    if (stream_.rest != RestOfLine::same_workgroup) return;
    const Bytes step = std::min(footprint_.distinct * step_in(cache.line), footprint_.in_flight);
    asks_.rest_of_line *= 1 - hit_probability(step, capacity);
  }

 private:
  // Whole lines by one workgroup.
  [[nodiscard]] bool is_asked_once() const {
    return stream_.workgroups <= 1 && stream_.asks <= 1 && stream_.rest == RestOfLine::nobody;
  }

  [[nodiscard]] double others_missed(const MemoryLevel& of_unit, double visits, Bytes residents) const {
    const double firsts = std::min(visits, place_.units);
    const Bytes drift = std::max(kDrift * residents, kInstruction);
    const double together =
        (stream_.workgroups - visits) * (1 - hit_probability(drift, of_unit.size * reachable(of_unit)));
    const double later =
        (visits - firsts) * (1 - hit_probability(place_.per_unit * footprint_.workgroup, of_unit.size));
    return firsts - 1 + together + later;
  }

  [[nodiscard]] double others_missed(Bytes shared, double together_missed) const {
    const double asked = 1 + asks_.others;
    const double concurrent = std::clamp(place_.sharers(stream_) * asked / stream_.workgroups, 1.0, asked);
    const bool swept = stream_.unique < footprint_.largest;
    const double together = asked - asked / concurrent, temporal = asked / concurrent - 1;
    const Bytes distance = footprint_.in_flight + (swept ? stream_.unique : Bytes{});
    return temporal * (1 - hit_probability(distance, shared)) + together * together_missed;
  }

  // Of a unit's cache, whose sets take turns line by line, the share that pieces of rows `pitch` apart come to lie in:
  // with a pitch of a power of two a few sets. A shared cache hashes.
  [[nodiscard]] double reachable(const MemoryLevel& cache) const {
    const double ways = cache.ways > 0 ? cache.ways : kDefaultWays;
    if (stream_.pitch == Bytes{}) return 1;
    const auto round = static_cast<long>((cache.size / ways).value());  // bytes that lie in every set once
    const auto apart = std::gcd(static_cast<long>(stream_.pitch.value()), round);
    return std::min(1.0, cache.line / Bytes(static_cast<double>(apart)));
  }

  // Of one workgroup to a line.
  [[nodiscard]] double visits_to(Bytes line) const {
    if (stream_.run == Bytes{}) return stream_.visits;
    return run_rounding(stream_.run, line, stream_.pitch);
  }
  // Lines that it asks for from one of them to the next.
  [[nodiscard]] Bytes step_in(Bytes line) const { return stream_.step * (stream_.run > Bytes{} ? visits_to(line) : 1); }

  const Stream& stream_;
  const Placement& place_;
  const Footprint& footprint_;
  Asks asks_;
};

// Back to when the bytes were touched before the op, as in reuse.hpp.
[[nodiscard]] Bytes first_distance(const Op& op, const Stream& stream, Bytes footprint, CacheStart start) {
  if (start == CacheStart::cold) return kColdDistance;
  const bool of_neighbour = stream.role == OperandRole::activation || stream.role == OperandRole::output;
  if (of_neighbour) return 2 * stream.unique;
  const bool of_last_layer = stream.role == OperandRole::block_table;
  return std::max(of_last_layer ? footprint / std::max(1, op.count) : footprint, stream.unique);
}

}  // namespace

LevelBytes stream_bytes(const Machine& machine, const Op& op, const lower::Launch& launch, Bytes footprint,
                        CacheStart start) {
  const Placement place(machine, launch.streams.workgroups, launch.workgroups_per_unit);
  const Footprint read(launch.streams, place);
  LevelBytes result;
  for (const Stream& stream : launch.streams.all()) {
    Descent descent(stream, place, read);
    for (std::size_t level = 0; level < machine.memory.size(); ++level) {
      const MemoryLevel& memory = machine.memory[level];
      const bool is_dram = level + 1 == machine.memory.size();
      const bool in_bytes = level == 0 || (is_written(stream.role) && !is_dram);
      const double rounding = in_bytes ? 1 : descent.rounding(arriving_line(machine, level));
      const Bytes arriving = stream.unique * descent.asks().total() * rounding;
      result.arriving[level] += arriving;
      if (level == 0 && !is_written(stream.role)) result.read += arriving;
      if (is_dram) break;
      if (memory.scope == Scope::device)
        descent.pass_shared(memory, first_distance(op, stream, footprint, start));
      else
        descent.pass_private(memory);
    }
  }
  return result;
}

}  // namespace dculab::sim
