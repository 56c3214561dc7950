#include "engine/probe/memory_probe.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>

#include "engine/probe/retention_time.hpp"
#include "kernels/cpu/probe/dependent_chain.hpp"

namespace dculab::engine {
namespace {

using kernels::cpu::Distribution;
using kernels::cpu::kReadGranule;
using kernels::cpu::StreamShape;

constexpr std::size_t kPiece = std::size_t{8} << 20;     // what a thread reads of DRAM before it takes more
constexpr std::size_t kWindow = std::size_t{256} << 20;  // what one run reads of DRAM

// Latency: memory that any TLB covers, even in a virtual machine whose host splits its pages into 4 KB ones; pointers
// followed per call; and the longest cycle that is walked once before it is timed.
constexpr std::size_t kNeighbourhood = std::size_t{2} << 20;
constexpr std::int64_t kSteps = 1024;
constexpr std::int64_t kWarmStops = std::int64_t{1} << 20;
constexpr std::int64_t kWarmRounds = 4;

// A set waits that long in a cache, longer and longer, and is read so often before.
constexpr Seconds kFirstWait{0.25e-3}, kLastWait{64e-3};
constexpr std::int64_t kPassesBefore = 8;

// The loads are real as long as somebody could look at their sum.
void keep(std::uint64_t value) {
  static std::atomic<std::uint64_t> sum{0};
  sum.fetch_xor(value, std::memory_order_relaxed);
}

std::size_t to_granules(Bytes bytes) {
  const auto whole = static_cast<std::size_t>(bytes.value()) / kReadGranule * kReadGranule;
  return std::max(whole, kReadGranule);
}

// Enough that no cache of the host holds much of it, within what memory is free.
std::size_t choose_size(const Topology& topology, const Effort& effort) {
  const CacheLevel& last = topology.caches.back();
  const Bytes caches = last.size * last.instances;
  const Bytes wanted = std::max(effort.dram, std::min(4.0 * caches, 8.0 * kGiB));
  const auto size = static_cast<std::size_t>(std::min(wanted, topology.available / 3.0).value());
  return std::max(size / kPiece, std::size_t{8}) * kPiece;
}

std::string describe(StreamShape shape) {
  std::string text = std::to_string(shape.streams) + (shape.streams == 1 ? " stream, " : " streams, ");
  return text + (shape.prefetch_bytes == 0 ? "no software prefetch"
                                           : "prefetch " + std::to_string(shape.prefetch_bytes) + " B ahead");
}

std::vector<StreamShape> list_shapes(std::initializer_list<int> distances) {
  std::vector<StreamShape> shapes;
  for (const int streams : {1, 2, 4, 8}) {
    for (const int distance : distances) shapes.push_back({streams, distance});
  }
  return shapes;
}

// Measures every shape a little, then the fastest one properly. run(shape) returns a rate.
template <typename Run>
ReadRate measure_fastest(const std::vector<StreamShape>& shapes, int threads, const Effort& effort, Run&& run) {
  const auto sample = [&](StreamShape shape, int runs) {
    std::vector<BytesPerSecond> rates;
    for (int i = 0; i < runs; ++i) rates.push_back(run(shape));
    return spread_of(rates);
  };
  StreamShape fastest;
  BytesPerSecond best;
  for (const StreamShape shape : shapes) {
    const BytesPerSecond rate = sample(shape, effort.search_runs).median;
    if (rate > best) {
      best = rate;
      fastest = shape;
    }
  }
  return {threads, sample(fastest, effort.runs), describe(fastest)};
}

// Reads a set `passes` times, from byte `start` on and around.
void read_around(const std::byte* data, std::size_t bytes, std::size_t start, std::int64_t passes, StreamShape shape) {
  if (start == 0) return keep(kernels::cpu::read_memory(data, bytes, static_cast<int>(passes), shape));
  for (std::int64_t pass = 0; pass < passes; ++pass) {
    keep(kernels::cpu::read_memory(data + start, bytes - start, 1, shape));
    keep(kernels::cpu::read_memory(data, start, 1, shape));
  }
}

// Waits without sleeping: a core that sleeps may empty its caches itself.
void stay_busy(Seconds time) {
  for (const Seconds until = wall_clock() + time; wall_clock() < until;) continue;
}

}  // namespace

MemoryProbe::MemoryProbe(const Topology& topology, PageSize pages, const Effort& effort, Team& largest_team)
    : effort_(effort), buffer_(choose_size(topology, effort), pages) {
  largest_team.parallel_for(
      static_cast<int>(buffer_.size() / kPiece),
      [&](int piece, int) { std::memset(buffer_.data() + static_cast<std::size_t>(piece) * kPiece, 0x5A, kPiece); },
      Distribution::fixed);
}

ReadRate MemoryProbe::read_cache(Bytes working_set, Sharing sharing, Team& team) {
  const auto threads = static_cast<std::size_t>(team.num_threads());
  const bool shared = sharing == Sharing::several_cores;
  const std::size_t set = std::min(to_granules(working_set), to_granules(size() / (shared ? 1.0 : team.num_threads())));
  const auto read = [&](StreamShape shape, std::int64_t passes) {
    return sum_of_rates<BytesPerSecond>(team, [&](int task) {
      const auto index = static_cast<std::size_t>(task);
      const std::size_t start = set / threads * index / kReadGranule * kReadGranule;
      if (shared)
        read_around(buffer_.data(), set, start, passes, shape);
      else
        read_around(buffer_.data() + index * set, set, 0, passes, shape);
      return Bytes(static_cast<double>(set) * static_cast<double>(passes));
    });
  };
  const std::int64_t passes =
      choose_repeats(SampleClock::wall, effort_.sample, [&](std::int64_t repeats) { (void)read({}, repeats); });
  return measure_fastest(list_shapes({0, 1024, 2048}), team.num_threads(), effort_,
                         [&](StreamShape shape) { return read(shape, passes); });
}

BytesPerSecond MemoryProbe::read_next_window(Team& team, StreamShape shape) {
  const std::size_t window = std::min(kWindow, buffer_.size() / 8 / kPiece * kPiece);
  if (next_window_ + window > buffer_.size()) next_window_ = 0;
  const std::byte* data = buffer_.data() + next_window_;
  next_window_ += window;
  const auto pieces = static_cast<int>(window / kPiece);
  const Seconds taken = time_run(SampleClock::wall, [&] {
    team.parallel_for(
        pieces,
        [&](int piece, int) {
          keep(kernels::cpu::read_memory(data + static_cast<std::size_t>(piece) * kPiece, kPiece, 1, shape));
        },
        Distribution::dynamic);
  });
  return Bytes(static_cast<double>(window)) / taken;
}

ReadRate MemoryProbe::read_dram(Team& team) {
  return measure_fastest(list_shapes({0, 1024, 2048, 4096, 8192}), team.num_threads(), effort_,
                         [&](StreamShape shape) { return read_next_window(team, shape); });
}

BytesPerSecond MemoryProbe::read_own_set(Bytes working_set, Team& team) {
  const std::size_t set =
      std::min(to_granules(working_set), to_granules(size() / static_cast<double>(team.num_threads())));
  const auto read = [&](std::int64_t passes) {
    team.parallel_for(
        team.num_threads(),
        [&](int task, int) { read_around(buffer_.data() + static_cast<std::size_t>(task) * set, set, 0, passes, {}); },
        Distribution::fixed);
  };
  const std::int64_t passes = choose_repeats(SampleClock::wall, 0.5 * effort_.sample, read);
  std::vector<BytesPerSecond> rates;
  for (int run = 0; run < 3; ++run) {
    const Seconds taken = time_run(SampleClock::wall, [&] { read(passes); });
    rates.push_back(Bytes(static_cast<double>(set) * team.num_threads() * static_cast<double>(passes)) / taken);
  }
  return spread_of(rates).median;
}

Spread<Seconds> MemoryProbe::measure_latency(Bytes working_set, Bytes stride, Locality locality) {
  const std::size_t set = std::min(to_granules(working_set), buffer_.size());
  const auto step = static_cast<std::size_t>(stride.value());
  const std::size_t window = locality == Locality::anywhere ? set : std::min(set, kNeighbourhood);
  kernels::cpu::link_random_cycle(buffer_.data(), set, step, window);
  const std::byte* place = buffer_.data();
  const auto follow = [&](std::int64_t repeats) { place = kernels::cpu::follow_pointers(place, repeats * kSteps); };
  const auto stops = static_cast<std::int64_t>(set / step);
  if (stops <= kWarmStops) {
    follow(kWarmRounds * stops / kSteps + 1);
  } else {  // too much to be warm: then no part of it shall be
    keep(kernels::cpu::read_memory(buffer_.data() + set, buffer_.size() - set, 1, {}));
  }
  const std::int64_t repeats = choose_repeats(SampleClock::thread, 0.5 * effort_.sample, follow);
  std::vector<Seconds> latencies;
  for (int run = 0; run < effort_.runs; ++run) {
    const Seconds taken = time_run(SampleClock::thread, [&] { follow(repeats); });
    latencies.push_back(taken / static_cast<double>(repeats * kSteps));
  }
  keep(reinterpret_cast<std::uintptr_t>(place));
  return spread_of(latencies);
}

Seconds MemoryProbe::measure_retention_time(Bytes working_set) {
  const std::size_t set = std::min(to_granules(working_set), buffer_.size());
  const auto pass_after = [&](Seconds wait) {
    std::vector<Seconds> passes;
    for (int run = 0; run < effort_.runs; ++run) {
      read_around(buffer_.data(), set, 0, kPassesBefore, {});
      stay_busy(wait);
      passes.push_back(time_run(SampleClock::wall, [&] { read_around(buffer_.data(), set, 0, 1, {}); }));
    }
    return spread_of(passes).median;
  };
  const Seconds warm = pass_after({});
  std::vector<ReadAfter> after;
  for (Seconds wait = kFirstWait; wait <= kLastWait; wait *= 2) after.push_back({wait, pass_after(wait)});
  return retention_time(warm, after);
}

}  // namespace dculab::engine
