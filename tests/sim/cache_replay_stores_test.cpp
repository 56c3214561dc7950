// Stores whose hits, reads and write-backs are worked out by hand.
#include <cstdint>
#include <vector>

#include "tests/sim/small_caches.hpp"
#include "tests/support/catch.hpp"

namespace dculab::sim::test {
namespace {

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

// Byte ranges of one instruction; lines that they touch, bytes stored, bytes that complete those lines.
struct StoredPieces {
  std::vector<TraceBuilder::Piece> pieces;
  std::uint64_t lines;
  double stored, rest;
};

const std::vector<StoredPieces> kPieces{
    {{{0, 64}}, 1, 64, 0},
    {{{0, 32}}, 1, 32, 64},
    {{{32, 64}}, 2, 64, 128},
    {{{0, 32}, {32, 32}}, 1, 64, 0},
    {{{0, 32}, {40, 24}}, 1, 56, 64},
    {{{0, 96}, {100, 28}}, 2, 124, 64},
    {{{0, 32}, {40, 120}}, 3, 152, 128},
    {{{0, 8}, {16, 8}, {48, 16}, {256, 64}}, 2, 96, 64},
};

TraceBuilder& store_pieces(TraceBuilder& trace, const StoredPieces& stored, std::uint64_t output) {
  std::vector<TraceBuilder::Piece> placed = stored.pieces;
  for (TraceBuilder::Piece& piece : placed) piece.address += output;
  CAPTURE(placed.size(), placed.front().bytes, placed.back().bytes);
  return trace.wave().add(placed, AccessKind::store);
}

TEST_CASE("a part of a line that is stored is kept as it is, and the rest read when a load asks for the line") {
  for (const StoredPieces& stored : kPieces) {
    TraceBuilder trace;
    const std::uint64_t output = trace.buffer(OperandRole::output, 4096);
    const CacheReplay result = replay(roomy_gpu(1), store_pieces(trace, stored, output));
    CHECK(stores(result, 1).lines == stored.lines);
    CHECK(stores(result, 1).bytes == Bytes(stored.stored));
    CHECK(result.read_from_dram() == Bytes(0));
    CHECK(result.written_to_dram() == Bytes(64.0 * static_cast<double>(stored.lines)));
    CHECK(result.stores.lines == stored.lines);
    for (std::uint64_t at = 0; at < 512; at += 64) trace.load(output + at, 64);
    const double untouched = 512 - 64.0 * static_cast<double>(stored.lines);
    CHECK(replay(roomy_gpu(1), trace).read_from_dram() == Bytes(untouched + stored.rest));
  }
}

TEST_CASE("a CPU's cache reads the rest of a line of which a part is stored, and only that line") {
  for (const StoredPieces& stored : kPieces) {
    TraceBuilder trace;
    const std::uint64_t output = trace.buffer(OperandRole::output, 4096);
    const CacheReplay result = replay(cpu_like(), store_pieces(trace, stored, output));
    CHECK(result.read_from_dram() == Bytes(stored.rest));
    CHECK(result.written_to_dram() == Bytes(64.0 * static_cast<double>(stored.lines)));
  }
}

TEST_CASE("stores that complete a line one after the other leave nothing to read") {
  TraceBuilder trace;
  const std::uint64_t output = trace.buffer(OperandRole::output, 4096);
  trace.wave().store(output, 16).store(output + 16, 32).store(output + 48, 16).load(output, 64);
  CHECK(replay(roomy_gpu(1), trace).read_from_dram() == Bytes(0));
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

}  // namespace
}  // namespace dculab::sim::test
