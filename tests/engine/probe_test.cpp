// Is what the probe measures sane? Orders of magnitude apart are compared, never times.
#include <cmath>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "engine/probe/explanation.hpp"
#include "engine/probe/foreign_load.hpp"
#include "engine/probe/page_buffer.hpp"
#include "engine/probe/probe.hpp"
#include "engine/probe/retention_time.hpp"
#include "engine/probe/sampling.hpp"
#include "kernels/cpu/probe/arithmetic.hpp"
#include "kernels/cpu/probe/dependent_chain.hpp"
#include "kernels/cpu/probe/read_stream.hpp"
#include "tests/support/catch.hpp"

using namespace dculab;
using namespace dculab::engine;

namespace {

std::vector<std::byte> make_bytes(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>((i * 2654435761U) >> 13);
  return bytes;
}

ReadRate reads(double gigabytes_per_second) {
  const BytesPerSecond rate(gigabytes_per_second * 1e9);
  return {1, {rate, rate, rate}, ""};
}

// A host with one shared cache in front of DRAM.
HostMeasurements make_host() {
  HostMeasurements host;
  host.levels.resize(2);
  host.levels[0].name = "L3";
  host.levels[0].sharing = Sharing::several_cores;
  host.levels[0].size = 32 * kMiB;
  host.levels[0].read = {reads(100)};
  host.levels[1].name = "DRAM";
  host.levels[1].read = {reads(16)};
  host.levels[1].huge_share = 1;
  for (const auto& [mebibytes, rate] : {std::pair{4.0, 99.0}, {16.0, 60.0}, {32.0, 39.0}, {64.0, 20.0}}) {
    host.sweep.push_back({mebibytes * kMiB, 1, BytesPerSecond(rate * 1e9), Seconds(1e-8)});
    host.sweep.push_back({mebibytes * kMiB, 2, BytesPerSecond(2e11), Seconds()});
  }
  return host;
}

bool any_contains(const std::vector<std::string>& texts, const std::string& part) {
  for (const std::string& text : texts) {
    if (text.find(part) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("CPU times count stolen time as busy", "[probe]") {
  const auto times = parse_cpu_times("cpu  10 20 30 400 50 1 2 7 5 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n", 100);
  REQUIRE(times);
  CHECK_THAT(times->busy.value(), WithinAbs(0.70, 1e-12));
  CHECK_THAT(times->total.value(), WithinAbs(5.20, 1e-12));
  CHECK_FALSE(parse_cpu_times("intr 1 2 3 4 5 6 7 8", 100));
  CHECK_FALSE(parse_cpu_times("cpu 1 2 3", 100));
}

TEST_CASE("a warning says when others used the CPUs, and what L3 really holds", "[probe]") {
  HostMeasurements host = make_host();
  find_reach(host);
  CHECK(host.levels[0].reach == 16 * kMiB);  // 60 GB/s is nearer to 100 than to 16; 39 is not
  CHECK(host.levels[1].reach == Bytes(0));

  host.foreign_load_dram = 0.5 * kTolerableForeignLoad;
  explain(host);
  CHECK_FALSE(any_contains(host.notes, "warning"));
  CHECK(any_contains(host.notes, "of its 32 MiB"));
  host.notes.clear();
  host.foreign_load_dram = 2 * kTolerableForeignLoad;
  explain(host);
  CHECK(any_contains(host.notes, "warning: other processes used 0.0 % of the CPUs during the probe, 6.0 % while DRAM"));
}

TEST_CASE("spreads and thread counts", "[probe]") {
  const auto spread = spread_of(std::vector{Bytes(5), Bytes(1), Bytes(9)});
  CHECK(spread.lowest == Bytes(1));
  CHECK(spread.median == Bytes(5));
  CHECK(spread.highest == Bytes(9));
  CHECK(thread_counts(1) == std::vector<int>{1});
  CHECK(thread_counts(2) == std::vector<int>{1, 2});
  CHECK(thread_counts(12) == std::vector<int>{1, 2, 4, 8, 12});
}

TEST_CASE("reading memory loads every byte in every shape", "[probe]") {
  const std::size_t bytes = 6 * kernels::cpu::kReadGranule;
  PageBuffer buffer(bytes, PageSize::small);
  const std::vector<std::byte> values = make_bytes(bytes);
  std::memcpy(buffer.data(), values.data(), bytes);
  std::uint64_t expected = 0;
  for (std::size_t i = 0; i < bytes; i += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, values.data() + i, sizeof word);
    expected ^= word;
  }
  REQUIRE(expected != 0);
  for (const int streams : {1, 2, 4, 8}) {
    for (const int prefetch : {0, 1024}) {
      CAPTURE(streams, prefetch);
      CHECK(kernels::cpu::read_memory(buffer.data(), bytes, 1, {streams, prefetch}) == expected);
      CHECK(kernels::cpu::read_memory(buffer.data(), bytes, 2, {streams, prefetch}) == 0);
      CHECK(kernels::cpu::read_memory(buffer.data(), bytes, 3, {streams, prefetch}) == expected);
    }
  }
}

TEST_CASE("a pointer walk visits every stop once, window after window", "[probe]") {
  constexpr std::size_t kStride = 64, kBytes = 1 << 16;
  const std::size_t window = GENERATE(std::size_t{1} << 16, std::size_t{1} << 12, std::size_t{64});
  PageBuffer buffer(kBytes, PageSize::huge);
  kernels::cpu::link_random_cycle(buffer.data(), kBytes, kStride, window);
  std::set<const std::byte*> stops;
  std::size_t window_changes = 0;
  const std::byte* place = buffer.data();
  for (std::size_t i = 0; i < kBytes / kStride; ++i) {
    const std::byte* next = nullptr;
    std::memcpy(&next, place, sizeof next);
    const auto window_of = [&](const std::byte* p) { return static_cast<std::size_t>(p - buffer.data()) / window; };
    if (window_of(next) != window_of(place)) ++window_changes;
    stops.insert(place);
    place = next;
  }
  CHECK(place == buffer.data());
  CHECK(stops.size() == kBytes / kStride);
  CHECK(window_changes == (window == kBytes ? 0 : kBytes / window));
  CHECK(kernels::cpu::follow_pointers(buffer.data(), kBytes / kStride) == buffer.data());
}

TEST_CASE("adds and multiply-adds are counted", "[probe]") {
  CHECK(kernels::cpu::add_dependent(1600) == 1600);
  for (const kernels::cpu::Arithmetic arithmetic : kernels::cpu::kArithmetics) {
    const double once = kernels::cpu::run_arithmetic(arithmetic, 1).value();
    CHECK(once >= 24);  // twelve sums of at least one lane
    CHECK(kernels::cpu::run_arithmetic(arithmetic, 50).value() == 50 * once);
    CHECK_FALSE(kernels::cpu::describe(arithmetic).name.empty());
  }
}

TEST_CASE("how long a cache keeps is read off the passes after longer and longer waits") {
  const auto passes = [](double kept, double slowed) {
    std::vector<ReadAfter> after;
    for (double wait = 0.25e-3; wait <= 64e-3; wait *= 2)
      after.push_back({Seconds(wait), Seconds(1e-3 * (1 + slowed * (1 - std::exp(-wait / kept))))});
    return after;
  };
  const Seconds warm(1e-3);
  for (const double kept : {0.5e-3, 1e-3, 5e-3, 15e-3})
    CHECK(retention_time(warm, passes(kept, 1)) / Seconds(kept) == Approx(1).epsilon(0.1));
  CHECK(retention_time(warm, passes(5e-3, 0.2)) == Seconds{});
  CHECK(retention_time(warm, passes(1e-5, 1)) == Seconds(0.25e-3));
}

TEST_CASE("a quick probe of this host is sane", "[probe][slow][once]") {
  std::vector<double> fractions;
  const HostMeasurements host =
      probe_host({ProbeMode::quick, 2, [&](std::string_view, double fraction) { fractions.push_back(fraction); }});

  CHECK(std::is_sorted(fractions.begin(), fractions.end()));
  CHECK(fractions.back() == 1);
  CHECK(host.threads == 2);
  CHECK(host.clock > Hertz(1e8));
  REQUIRE(host.levels.size() >= 2);
  CHECK(host.levels.back().name == "DRAM");
  for (const LevelMeasurement& level : host.levels) {
    CAPTURE(level.name);
    CHECK(level.size > Bytes(0));
    CHECK(level.line >= Bytes(16));
    REQUIRE(level.read.size() == 2);
    for (const ReadRate& read : level.read) CHECK(read.rate.lowest > BytesPerSecond(0));
    CHECK(level.latency.lowest > Seconds(0));
    CHECK(level.retention_time >= Seconds(0));
    CHECK((&level == &host.levels[host.levels.size() - 2] || level.retention_time == Seconds(0)));
  }
  // Which level is faster is a timing, and on a busy machine or in a sanitized build it can come out either way.
  for (std::size_t i = 1; i + 1 < host.levels.size(); ++i) CHECK(host.levels[i].size > host.levels[i - 1].size);
  CHECK(host.levels.back().outstanding > 0);
  CHECK(host.dram_small_pages.huge_share == 0);
  CHECK(host.peaks.size() == kernels::cpu::kArithmetics.size());
  for (const PeakMeasurement& peak : host.peaks) CHECK(peak.rate.size() == 2);
  for (const int in_features : {2048, 512})
    CHECK(std::ranges::count(host.matmuls, in_features, &MatmulMeasurement::in_features) >= 7);
  for (const MatmulMeasurement& matmul : host.matmuls) {
    CHECK(matmul.rows >= 1);
    CHECK(matmul.rate.lowest > FlopsPerSecond(0));
    CHECK(matmul.rate.lowest <= matmul.rate.highest);
    CHECK(matmul.weights_read.lowest > BytesPerSecond(0));
  }
  CHECK(host.fork_join.at(2) > Seconds(0));
  CHECK_FALSE(host.sweep.empty());
  CHECK_FALSE(host.notes.empty());
}
