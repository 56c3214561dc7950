// Traces whose hits and bytes are worked out by hand.
#include "sim/memory/cache_replay.hpp"

#include <stdexcept>
#include <utility>

#include "tests/sim/address_traces.hpp"
#include "tests/sim/machines.hpp"
#include "tests/support/catch.hpp"

namespace dculab::sim::test {
namespace {

constexpr int kFully = 1 << 20;  // ways: more than lines

struct Geometry {
  double bytes = 0;
  int ways = kFully;
};

// Lines of 64 bytes at every level.
Machine gpu(int units, Geometry l1, Geometry l2) {
  Machine machine = mi50_like();
  machine.compute_units = units;
  machine.memory[0].size = Bytes(l1.bytes);
  machine.memory[0].ways = l1.ways;
  machine.memory[1].size = Bytes(l2.bytes);
  machine.memory[1].ways = l2.ways;
  return machine;
}

Machine roomy_gpu(int units) { return gpu(units, {16384, 4}, {1 << 22, 16}); }

CacheReplay replay(const Machine& machine, const TraceBuilder& trace, ReplayOptions options = {}) {
  return replay_cache(machine, trace.build(), options);
}

LineRequests loads(const CacheReplay& result, std::size_t level) {
  return result.levels.at(level).of(AccessKind::load);
}
LineRequests stores(const CacheReplay& result, std::size_t level) {
  return result.levels.at(level).of(AccessKind::store);
}

TEST_CASE("a wave that streams misses every line once, everywhere") {
  TraceBuilder trace;
  const std::uint64_t weights = trace.buffer(OperandRole::weight, 65536);
  trace.wave();
  for (std::uint64_t at = 0; at < 65536; at += 256) trace.load(weights + at, 256);
  const CacheReplay result = replay(roomy_gpu(1), trace);
  for (const std::size_t level : {0, 1}) {
    CHECK(loads(result, level).lines == 1024);
    CHECK(loads(result, level).hits == 0);
    CHECK(loads(result, level).bytes == Bytes(65536));
  }
  CHECK(result.read_from_dram() == Bytes(65536));
  CHECK(result.written_to_dram() == Bytes(0));
  CHECK(result.loads.lines_per_instruction() == 4);
  CHECK(result.loads.efficiency() == 1);
}

// Two workgroups, each one wave that reads the same 4 KiB.
TraceBuilder two_readers() {
  TraceBuilder trace;
  const std::uint64_t cache = trace.buffer(OperandRole::kv_read, 4096);
  for (int reader = 0; reader < 2; ++reader) {
    trace.wave();
    for (std::uint64_t at = 0; at < 4096; at += 256) trace.load(cache + at, 256);
  }
  return trace;
}

TEST_CASE("what two units read at the same time, the shared cache reads once") {
  const CacheReplay result = replay(roomy_gpu(2), two_readers());
  CHECK(loads(result, 0).hits == 0);
  CHECK(loads(result, 1).lines == 128);
  CHECK(loads(result, 1).hits == 64);
  CHECK(result.levels[1].total().hit_rate() == 0.5);
  CHECK(result.read_from_dram() == Bytes(4096));
}

TEST_CASE("on one unit the second reader hits in the L1, at the same time or later") {
  for (const int resident : {1, 2}) {
    const CacheReplay result = replay(roomy_gpu(1), two_readers(), {.workgroups_per_unit = resident});
    CHECK(loads(result, 0).lines == 128);
    CHECK(loads(result, 0).hits == 64);
    CHECK(loads(result, 1).lines == 64);
  }
}

// One wave reads `lines` lines, `stride` bytes apart, ten times over.
TraceBuilder cyclic(std::uint64_t lines, std::uint64_t stride) {
  TraceBuilder trace;
  const std::uint64_t weights = trace.buffer(OperandRole::weight, lines * stride);
  trace.wave();
  for (int pass = 0; pass < 10; ++pass)
    for (std::uint64_t line = 0; line < lines; ++line) trace.load(weights + line * stride, 64);
  return trace;
}

TEST_CASE("LRU keeps all of a loop that fits and nothing of one that is a line longer") {
  const Machine machine = gpu(1, {512, kFully}, {1 << 22, 16});
  CHECK(loads(replay(machine, cyclic(8, 64)), 0).hits == 72);
  CHECK(loads(replay(machine, cyclic(9, 64)), 0).hits == 0);
}

TEST_CASE("lines of one set evict each other while the cache is empty, unless the index is hashed") {
  const Machine machine = roomy_gpu(1);  // 64 sets: the same set every 4 KiB
  CHECK(loads(replay(machine, cyclic(4, 4096)), 0).hits == 36);
  CHECK(loads(replay(machine, cyclic(5, 4096)), 0).hits == 0);
  CHECK(loads(replay(machine, cyclic(5, 4096), {.private_index = SetIndex::hashed}), 0).hits == 45);
}

TEST_CASE("a number of sets that is no power of two holds as many lines") {
  const Machine machine = gpu(1, {12 * 64, 4}, {1 << 22, 16});
  CHECK(loads(replay(machine, cyclic(12, 64)), 0).hits == 108);
  CHECK(loads(replay(machine, cyclic(5, 3 * 64)), 0).hits == 0);
}

TEST_CASE("whole lines that are stored are not read, and are written back once if they stay") {
  TraceBuilder trace;
  const std::uint64_t output = trace.buffer(OperandRole::output, 4096);
  trace.wave();
  for (int pass = 0; pass < 2; ++pass)
    for (std::uint64_t at = 0; at < 4096; at += 256) trace.store(output + at, 256);
  const CacheReplay stays = replay(roomy_gpu(1), trace);
  CHECK(stores(stays, 0).hits == 0);
  CHECK(stores(stays, 1).lines == 128);
  CHECK(stores(stays, 1).hits == 64);
  CHECK(stays.read_from_dram() == Bytes(0));
  CHECK(stays.written_to_dram() == Bytes(4096));
  const CacheReplay thrashes = replay(gpu(1, {16384, 4}, {1024, kFully}), trace);
  CHECK(stores(thrashes, 1).hits == 0);
  CHECK(thrashes.written_to_dram() == Bytes(8192));
}

TEST_CASE("a part of a line that is stored reads the rest, and only that line") {
  using Pieces = std::vector<TraceBuilder::Piece>;
  // Byte ranges of one instruction; lines asked of the L2, bytes stored, bytes that DRAM must deliver first.
  const std::vector<std::tuple<Pieces, std::uint64_t, double, double>> cases{
      {{{0, 64}}, 1, 64, 0},
      {{{0, 32}}, 1, 32, 64},
      {{{32, 64}}, 2, 64, 128},
      {{{0, 32}, {32, 32}}, 1, 64, 0},
      {{{0, 32}, {40, 24}}, 1, 56, 64},
      {{{0, 96}, {100, 28}}, 2, 124, 64},
      {{{0, 32}, {40, 120}}, 3, 152, 128},
      {{{0, 8}, {16, 8}, {48, 16}, {256, 64}}, 2, 96, 64},
  };
  for (const auto& [pieces, lines, stored, read] : cases) {
    TraceBuilder trace;
    Pieces placed = pieces;
    const std::uint64_t output = trace.buffer(OperandRole::output, 4096);
    for (TraceBuilder::Piece& piece : placed) piece.address += output;
    const CacheReplay result = replay(roomy_gpu(1), trace.wave().add(placed, AccessKind::store));
    CAPTURE(pieces.size(), pieces.front().bytes, pieces.back().bytes);
    CHECK(stores(result, 1).lines == lines);
    CHECK(stores(result, 1).bytes == Bytes(stored));
    CHECK(result.read_from_dram() == Bytes(read));
    CHECK(result.written_to_dram() == Bytes(64.0 * static_cast<double>(lines)));
    CHECK(result.stores.lines == lines);
  }
}

TEST_CASE("a store passes through the L1: it brings no line in and throws none out") {
  TraceBuilder trace;
  const std::uint64_t output = trace.buffer(OperandRole::output, 4096);
  trace.wave().store(output, 64).load(output, 64).store(output, 64).load(output, 64);
  const CacheReplay result = replay(roomy_gpu(1), trace);
  CHECK(stores(result, 0).lines == 2);
  CHECK(stores(result, 0).hits == 1);
  CHECK(loads(result, 0).hits == 1);
  CHECK(loads(result, 1).lines == 1);
  CHECK(loads(result, 1).hits == 1);
  CHECK(stores(result, 1).lines == 2);
}

TEST_CASE("the caches of a CPU's core keep what is stored") {
  TraceBuilder trace;
  const std::uint64_t output = trace.buffer(OperandRole::output, 4096);
  trace.wave().store(output, 64).load(output, 64).store(output, 32);
  const CacheReplay result = replay(cpu_like(), trace);
  CHECK(stores(result, 0).hits == 1);
  CHECK(loads(result, 0).hits == 1);
  CHECK(result.read_from_dram() == Bytes(0));
  for (const std::size_t below : {1, 2, 3}) CHECK(stores(result, below).lines == 1);
}

TEST_CASE("scattered lanes move whole lines for a few bytes, each line once per instruction") {
  for (const auto& [stride, lines] : {std::pair{256U, 64U}, {8U, 8U}, {65U, 64U}}) {
    TraceBuilder trace;
    const std::uint64_t table = trace.buffer(OperandRole::block_table, 64 * stride + 64);
    std::vector<TraceBuilder::Piece> lanes;
    for (std::uint64_t lane = 0; lane < 64; ++lane) lanes.push_back({table + lane * stride, 4});
    const CacheReplay result = replay(roomy_gpu(1), trace.wave().add(lanes, AccessKind::load));
    CAPTURE(stride);
    // Of lanes 65 bytes apart, three cross a line; they share lines with their neighbours but for the last.
    const std::uint64_t expected = stride == 65 ? 65 : lines;
    CHECK(loads(result, 0).lines == expected);
    CHECK(loads(result, 0).hits == 0);
    CHECK(loads(result, 0).bytes == Bytes(256));
    CHECK(result.loads.lines_per_instruction() == static_cast<double>(expected));
    CHECK(result.loads.efficiency() == 256.0 / (64.0 * static_cast<double>(expected)));
  }
}

TEST_CASE("lanes that ask for the same bytes coalesce to more than was moved") {
  TraceBuilder trace;
  const std::uint64_t scale = trace.buffer(OperandRole::weight, 64);
  AddressTrace recorded = trace.wave().load(scale, 4).build();
  recorded.accesses.front().lane_bytes = 256;
  CHECK(replay_cache(roomy_gpu(1), recorded, {}).loads.efficiency() == 4);
}

TEST_CASE("more workgroups on a unit push each other out of its L1") {
  TraceBuilder trace;
  const std::uint64_t weights = trace.buffer(OperandRole::weight, 4 * 512);
  for (std::uint64_t workgroup = 0; workgroup < 4; ++workgroup) {
    trace.wave();
    for (int pass = 0; pass < 2; ++pass)
      for (std::uint64_t line = 0; line < 8; ++line) trace.load(weights + workgroup * 512 + line * 64, 64);
  }
  const Machine machine = gpu(1, {1024, kFully}, {1 << 22, 16});  // 16 lines: the contexts of two workgroups
  for (const auto& [resident, hits] : {std::pair{1, 32U}, {2, 32U}, {4, 0U}})
    CHECK(loads(replay(machine, trace, {.workgroups_per_unit = resident}), 0).hits == hits);
}

TEST_CASE("neighbouring lines that the L1 misses are one request of a longer L2 line") {
  Machine machine = roomy_gpu(1);
  machine.memory[1].line = Bytes(128);
  TraceBuilder trace;
  const std::uint64_t weights = trace.buffer(OperandRole::weight, 4096);
  trace.wave();
  for (std::uint64_t at = 0; at < 4096; at += 256) trace.load(weights + at, 256);
  const CacheReplay streamed = replay(machine, trace);
  CHECK(loads(streamed, 1).lines == 32);
  CHECK(loads(streamed, 1).hits == 0);
  CHECK(streamed.read_from_dram() == Bytes(4096));
  TraceBuilder halves;
  const std::uint64_t row = halves.buffer(OperandRole::weight, 128);
  const CacheReplay result = replay(machine, halves.wave().load(row, 64).load(row + 64, 64));
  CHECK(loads(result, 1).hits == 1);
  CHECK(result.read_from_dram() == Bytes(128));
}

TEST_CASE("the cache above DRAM keeps what DRAM delivers at once") {
  Machine machine = roomy_gpu(1);
  machine.memory[0].line = machine.memory[1].line = Bytes(32);
  TraceBuilder trace;
  const std::uint64_t row = trace.buffer(OperandRole::weight, 128);
  const CacheReplay result = replay(machine, trace.wave().load(row, 32).load(row + 32, 32));
  CHECK(result.levels[1].line == Bytes(64));
  CHECK(loads(result, 0).hits == 0);
  CHECK(loads(result, 1).bytes == Bytes(64));
  CHECK(loads(result, 1).hits == 1);
  CHECK(result.read_from_dram() == Bytes(64));
}

TEST_CASE("requests are counted by the operand they are for, write-backs too") {
  TraceBuilder trace;
  const std::uint64_t keys = trace.buffer(OperandRole::kv_read, 1024);
  const std::uint64_t output = trace.buffer(OperandRole::output, 256);
  trace.wave().load(keys, 1024).load(keys, 1024).store(output, 256);
  const CacheReplay result = replay(roomy_gpu(1), trace);
  CHECK(result.levels[0].of(OperandRole::kv_read).bytes == Bytes(2048));
  CHECK(result.levels[1].of(OperandRole::kv_read).bytes == Bytes(1024));
  CHECK(result.levels[2].of(OperandRole::kv_read).bytes == Bytes(1024));
  CHECK(result.levels[2].of(OperandRole::output).bytes == Bytes(256));
  CHECK(result.levels[2].of(OperandRole::weight).lines == 0);
}

TEST_CASE("a machine without caches asks DRAM for everything") {
  Machine machine = mi50_like();
  machine.memory = {machine.dram()};
  TraceBuilder trace;
  const std::uint64_t row = trace.buffer(OperandRole::weight, 128);
  const CacheReplay result = replay(machine, trace.wave().load(row, 4).load(row, 4).store(row + 60, 8));
  CHECK(result.read_from_dram() == Bytes(128));
  CHECK(result.written_to_dram() == Bytes(128));
}

TEST_CASE("traces that contradict themselves are refused") {
  TraceBuilder builder;
  const std::uint64_t row = builder.buffer(OperandRole::weight, 128);
  const AddressTrace sound = builder.wave().load(row, 128).build();
  CHECK(problems(sound).empty());
  AddressTrace trace = sound;
  trace.accesses[0].address += 8192;
  CHECK(problems(trace).size() == 1);
  CHECK_THROWS_AS(replay_cache(mi50_like(), trace, {}), std::invalid_argument);
  trace = sound;
  trace.accesses[0].bytes = 0;
  CHECK(problems(trace).size() == 1);
  trace = sound;
  trace.wave_begin.back() = 2;
  CHECK(problems(trace).size() == 1);
  trace = sound;
  trace.workgroups = 0;
  CHECK(problems(trace).size() == 1);
  trace = sound;
  trace.buffers.push_back({OperandRole::output, row + 256, 64});
  CHECK(problems(trace).size() == 1);
  CHECK_THROWS_AS(replay_cache(mi50_like(), sound, {.workgroups_per_unit = 0}), std::invalid_argument);
  Machine machine = mi50_like();
  machine.memory[1].line = Bytes(96);
  CHECK_THROWS_AS(replay_cache(machine, sound, {}), std::invalid_argument);
}

}  // namespace
}  // namespace dculab::sim::test
