// Traces whose hits and bytes are worked out by hand.
#include "sim/memory/cache_replay.hpp"

#include <stdexcept>
#include <utility>

#include "tests/sim/small_caches.hpp"
#include "tests/support/catch.hpp"

namespace dculab::sim::test {
namespace {

TEST_CASE("caches of more lines than memory should hold are refused") {
  Machine vast = roomy_gpu(1);
  vast.memory[1].size = Bytes(0x1p50);
  TraceBuilder trace;
  const std::uint64_t weights = trace.buffer(OperandRole::weight, 64);
  trace.wave();
  trace.load(weights, 64);
  CHECK_THROWS_WITH(replay(vast, trace), ContainsSubstring("more than 268435456 lines in all, too many to replay"));
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
