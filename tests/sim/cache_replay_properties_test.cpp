// The parts of the cache replay against simpler ones, and what must hold for any trace.
#include <algorithm>
#include <deque>
#include <random>
#include <set>
#include <vector>

#include "sim/memory/cache_replay.hpp"
#include "sim/memory/workgroup_dispatcher.hpp"
#include "tests/sim/address_traces.hpp"
#include "tests/sim/machines.hpp"
#include "tests/support/catch.hpp"

namespace dculab::sim::test {
namespace {

// LRU as the textbook has it: a list of (line, dirty) per set, most recent first.
class TextbookCache {
 public:
  TextbookCache(std::size_t sets, std::size_t ways) : ways_(ways), sets_(sets) {}

  SetAssociativeCache::Touch touch(LineNumber line, bool dirty) {
    auto& set = sets_[line % sets_.size()];
    const auto found = std::find_if(set.begin(), set.end(), [line](const auto& each) { return each.first == line; });
    if (found != set.end()) {
      dirty |= found->second;
      set.erase(found);
      set.emplace_front(line, dirty);
      return {true, kNoLine};
    }
    set.emplace_front(line, dirty);
    if (set.size() <= ways_) return {false, kNoLine};
    const auto [gone, was_dirty] = set.back();
    set.pop_back();
    return {false, was_dirty ? gone : kNoLine};
  }

 private:
  std::size_t ways_;
  std::vector<std::deque<std::pair<LineNumber, bool>>> sets_;
};

TEST_CASE("the cache hits, evicts and writes back as a textbook's does") {
  std::mt19937 random(7);
  for (const auto& [sets, ways] : {std::pair{1U, 16U}, {16U, 4U}, {12U, 16U}, {7U, 3U}, {64U, 1U}}) {
    SetAssociativeCache cache(64.0 * sets * ways, 64, static_cast<int>(ways), SetIndex::modulo);
    REQUIRE(cache.sets() == sets);
    REQUIRE(cache.ways() == ways);
    TextbookCache textbook(sets, ways);
    std::uint64_t hits = 0;
    for (int step = 0; step < 20000; ++step) {
      const auto line = static_cast<LineNumber>(random() % (2 * sets * ways));
      const bool dirty = random() % 4 == 0;
      const auto touch = cache.touch(line, dirty ? LineState::dirty : LineState::clean);
      const auto expected = textbook.touch(line, dirty);
      REQUIRE(touch.hit == expected.hit);
      REQUIRE(touch.written_back == expected.written_back);
      hits += touch.hit ? 1 : 0;
    }
    CHECK(hits > 5000);
    CHECK(hits < 15000);
  }
}

// Distances by walking back through all touches.
std::uint64_t distance_by_walking(const std::vector<LineNumber>& touches) {
  std::set<LineNumber> between;
  for (std::size_t back = touches.size() - 1; back-- > 0;) {
    if (touches[back] == touches.back()) return between.size();
    between.insert(touches[back]);
  }
  return ReuseDistances::kNever;
}

TEST_CASE("reuse distances are those found by walking back") {
  std::mt19937 random(11);
  for (const LineNumber lines : {1U, 2U, 40U, 300U}) {
    ReuseDistances distances(lines, Bytes(64));
    std::vector<LineNumber> touches;
    for (int step = 0; step < 1500; ++step) {
      // Mostly near ones, so that distances vary; long enough to renumber several times.
      const auto near = static_cast<LineNumber>(step / 5 % lines);
      touches.push_back(random() % 3 == 0 ? static_cast<LineNumber>(random() % lines) : near);
      REQUIRE(distances.touch(touches.back()) == distance_by_walking(touches));
    }
    CHECK(distances.histogram().total() == 1500);
    CHECK(distances.histogram().first_touches == std::set<LineNumber>(touches.begin(), touches.end()).size());
  }
}

TEST_CASE("a loop over n lines has reuse distance n - 1") {
  ReuseDistances distances(8, Bytes(64));
  for (int pass = 0; pass < 3; ++pass)
    for (LineNumber line = 0; line < 8; ++line) distances.touch(line);
  distances.touch(7);
  const ReuseHistogram& histogram = distances.histogram();
  CHECK(histogram.first_touches == 8);
  CHECK(histogram.touches[9] == 16);  // 7 * 64 = 448 lies in [256, 512)
  CHECK(histogram.touches[0] == 1);
  CHECK(histogram.closer_than(Bytes(512)) == 17);
  CHECK(histogram.closer_than(Bytes(256)) == 1);
}

TEST_CASE("waves take turns, units in step; a finished workgroup makes room for the next") {
  TraceBuilder builder(2);
  const std::uint64_t row = builder.buffer(OperandRole::weight, 4096);
  // Lengths of the waves: workgroup 0: 1, 3; 1: nothing; 2: 1, 1; 3: 2, 0; 4: 1, 1. Wave w reads at 100 * w.
  const std::vector<int> lengths{1, 3, 0, 0, 1, 1, 2, 0, 1, 1};
  for (std::size_t wave = 0; wave < lengths.size(); ++wave) {
    builder.wave();
    for (int step = 0; step < lengths[wave]; ++step) builder.load(row + 100 * wave + static_cast<unsigned>(step), 1);
  }
  const AddressTrace trace = builder.build();
  std::vector<std::pair<int, std::uint64_t>> order;
  WorkgroupDispatcher(trace, 2, 1).run([&](int unit, std::span<const WaveAccess> accesses) {
    order.emplace_back(unit, accesses.front().address - row);
  });
  // Workgroup 2 takes unit 1, 3 the place that it leaves; then both units are free and it is unit 0's turn.
  const std::vector<std::pair<int, std::uint64_t>> expected{{0, 0},   {1, 400}, {0, 100}, {1, 500}, {1, 600},
                                                            {0, 101}, {1, 601}, {0, 102}, {0, 800}, {0, 900}};
  CHECK(order == expected);
}

TEST_CASE("ranges of one instruction are issued together") {
  TraceBuilder builder;
  const std::uint64_t row = builder.buffer(OperandRole::weight, 4096);
  builder.wave().add({{row, 4}, {row + 100, 4}, {row + 200, 4}}, AccessKind::load).load(row, 4);
  const AddressTrace trace = builder.build();
  std::vector<std::size_t> ranges;
  WorkgroupDispatcher(trace, 4, 8).run([&ranges](int, std::span<const WaveAccess> accesses) {
    ranges.push_back(accesses.size());
  });
  CHECK(ranges == std::vector<std::size_t>{3, 1});
}

double distinct_bytes(const AddressTrace& trace, AccessKind kind) {
  std::set<std::uint64_t> bytes;
  for (const WaveAccess& access : trace.accesses)
    for (std::uint64_t at = 0; access.kind == kind && at < access.bytes; ++at) bytes.insert(access.address + at);
  return static_cast<double>(bytes.size());
}

double accessed_bytes(const AddressTrace& trace, AccessKind kind) {
  double bytes = 0;
  for (const WaveAccess& access : trace.accesses) bytes += access.kind == kind ? access.bytes : 0;
  return bytes;
}

TEST_CASE("any trace: every request hits or goes on, and DRAM moves at least what is distinct") {
  for (unsigned seed = 0; seed < 12; ++seed) {
    CAPTURE(seed);
    const AddressTrace trace = random_trace(seed, 30000);
    Machine machine = mi50_like();
    machine.compute_units = 1 + static_cast<int>(seed % 5);
    machine.memory[0].size = Bytes(2048);
    machine.memory[1].size = Bytes(8192 << (seed % 4));
    const CacheReplay result = replay_cache(machine, trace, {.workgroups_per_unit = 1 + static_cast<int>(seed % 3)});
    const auto& [l1, l2, dram] = std::tie(result.levels[0], result.levels[1], result.levels[2]);
    const auto misses = [](const LineRequests& requests) {
      return static_cast<double>(requests.lines - requests.hits);
    };
    CHECK(l1.of(AccessKind::load).bytes == Bytes(accessed_bytes(trace, AccessKind::load)));
    CHECK(l1.of(AccessKind::store).bytes == Bytes(accessed_bytes(trace, AccessKind::store)));
    CHECK(l2.of(AccessKind::load).bytes == Bytes(64 * misses(l1.of(AccessKind::load))));
    CHECK(l2.of(AccessKind::store).bytes == l1.of(AccessKind::store).bytes);
    CHECK(dram.of(OperandRole::weight).bytes == Bytes(64 * misses(l2.of(OperandRole::weight))));
    CHECK(dram.of(AccessKind::load).bytes <= Bytes(64 * misses(l2.total())));
    CHECK(dram.of(AccessKind::store).bytes <= Bytes(64 * misses(l2.of(AccessKind::store))));
    CHECK(result.read_from_dram() >= Bytes(distinct_bytes(trace, AccessKind::load)));
    CHECK(result.written_to_dram() >= Bytes(distinct_bytes(trace, AccessKind::store)));
  }
}

TEST_CASE("whole lines that are read grow fewer from level to level") {
  for (const std::uint32_t bytes : {64U, 256U, 1024U}) {
    const AddressTrace trace = attention_like(24, 4, 1 << 15, bytes);
    for (const int resident : {1, 4}) {
      Machine machine = mi50_like();
      machine.memory[1].size = Bytes(1 << 18);
      const CacheReplay result = replay_cache(machine, trace, {.workgroups_per_unit = resident});
      const auto read = [&result](std::size_t level) { return result.levels[level].of(AccessKind::load).bytes; };
      CHECK(read(0) == Bytes(24.0 * 4 * (1 << 15)));
      CHECK(read(1) <= read(0));
      CHECK(read(2) <= read(1));
      CHECK(read(2) >= Bytes(24.0 * (1 << 15)));
    }
  }
}

TEST_CASE("a fully associative LRU cache hits exactly the touches whose reuse distance is below its size") {
  for (unsigned seed = 0; seed < 6; ++seed) {
    const AddressTrace trace = random_trace(100 + seed, 40000);
    std::uint64_t former = 0;
    for (const double size : {1024.0, 4096.0, 16384.0, 65536.0, 131072.0}) {
      Machine machine = mi50_like();
      machine.compute_units = 3;
      machine.memory.erase(machine.memory.begin());
      machine.memory[0].size = Bytes(size);
      machine.memory[0].ways = 1 << 20;
      const CacheReplay result =
          replay_cache(machine, trace, {.workgroups_per_unit = 2, .reuse = ReuseMeasurement::on});
      const LineRequests requests = result.levels[0].total();
      REQUIRE(result.reuse);
      CHECK(requests.lines == result.reuse->total());
      CHECK(requests.hits == result.reuse->closer_than(Bytes(size)));
      CHECK(requests.hits > former);
      former = requests.hits;
    }
  }
}

TEST_CASE("the same trace gives the same replay, with reuse distances measured or not") {
  const AddressTrace trace = random_trace(5, 100000);
  const ReplayOptions options{.workgroups_per_unit = 2};
  const ReplayOptions measuring{.workgroups_per_unit = 2, .reuse = ReuseMeasurement::on};
  const CacheReplay first = replay_cache(mi50_like(), trace, options);
  for (const CacheReplay& again :
       {replay_cache(mi50_like(), trace, options), replay_cache(mi50_like(), trace, measuring)})
    for (std::size_t level = 0; level < first.levels.size(); ++level)
      for (const AccessKind kind : {AccessKind::load, AccessKind::store}) {
        CHECK(again.levels[level].of(kind).lines == first.levels[level].of(kind).lines);
        CHECK(again.levels[level].of(kind).hits == first.levels[level].of(kind).hits);
        CHECK(again.levels[level].of(kind).bytes == first.levels[level].of(kind).bytes);
      }
}

}  // namespace
}  // namespace dculab::sim::test
