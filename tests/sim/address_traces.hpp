// Address traces written by hand, and two that look like kernels.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "core/address_trace.hpp"

namespace dculab::sim::test {

class TraceBuilder {
 public:
  explicit TraceBuilder(int waves_per_workgroup = 1) {
    trace_.kernel = "written_by_hand";
    trace_.waves_per_workgroup = waves_per_workgroup;
  }

  // Returns the address of a new buffer.
  std::uint64_t buffer(OperandRole role, std::uint64_t bytes) {
    const std::uint64_t address = next_page_;
    trace_.buffers.push_back({role, address, bytes});
    next_page_ += (bytes + 4095) / 4096 * 4096;
    return address;
  }

  // What follows belongs to a new wave; every waves_per_workgroup of them are a workgroup.
  TraceBuilder& wave() {
    trace_.wave_begin.push_back(trace_.accesses.size());
    instruction_ = 0;
    return *this;
  }

  TraceBuilder& load(std::uint64_t address, std::uint32_t bytes) { return add({{address, bytes}}, AccessKind::load); }
  TraceBuilder& store(std::uint64_t address, std::uint32_t bytes) { return add({{address, bytes}}, AccessKind::store); }

  struct Piece {
    std::uint64_t address = 0;
    std::uint32_t bytes = 0;
  };
  // One instruction with several ranges.
  TraceBuilder& add(const std::vector<Piece>& pieces, AccessKind kind) {
    for (const Piece& piece : pieces)
      trace_.accesses.push_back({piece.address, piece.bytes, piece.bytes, instruction_, kind});
    ++instruction_;
    return *this;
  }

  [[nodiscard]] AddressTrace build() const {
    AddressTrace trace = trace_;
    trace.workgroups = static_cast<int>(trace.wave_begin.size()) / trace.waves_per_workgroup;
    trace.wave_begin.push_back(trace.accesses.size());
    return trace;
  }

 private:
  AddressTrace trace_;
  std::uint64_t next_page_ = 4096;
  std::uint32_t instruction_ = 0;
};

// `readers` workgroups of 4 waves read each of `sequences` contexts of `bytes` and write a row of output; a wave's
// instruction covers `bytes_per_load`.
inline AddressTrace attention_like(int sequences, int readers, std::uint64_t bytes, std::uint32_t bytes_per_load) {
  TraceBuilder builder(4);
  const std::uint64_t cache = builder.buffer(OperandRole::kv_read, static_cast<std::uint64_t>(sequences) * bytes);
  const std::uint64_t output =
      builder.buffer(OperandRole::output, static_cast<std::uint64_t>(sequences) * static_cast<unsigned>(readers) * 256);
  for (int sequence = 0; sequence < sequences; ++sequence)
    for (int reader = 0; reader < readers; ++reader)
      for (unsigned wave = 0; wave < 4; ++wave) {
        builder.wave();
        const std::uint64_t begin = cache + static_cast<std::uint64_t>(sequence) * bytes;
        for (std::uint64_t at = wave * bytes_per_load; at < bytes; at += 4ULL * bytes_per_load)
          builder.load(begin + at, bytes_per_load);
        if (wave == 0) builder.store(output + static_cast<std::uint64_t>(sequence * readers + reader) * 256, 256);
      }
  return builder.build();
}

// Loads and stores of any length, alignment and number of ranges, by many workgroups.
inline AddressTrace random_trace(unsigned seed, std::uint64_t footprint) {
  std::mt19937_64 random(seed);
  const auto upto = [&random](std::uint64_t most) {
    return std::uniform_int_distribution<std::uint64_t>(0, most)(random);
  };
  TraceBuilder builder(2);
  const std::uint64_t read = builder.buffer(OperandRole::weight, footprint);
  const std::uint64_t written = builder.buffer(OperandRole::output, footprint);
  for (int wave = 0; wave < 60; ++wave) {
    builder.wave();
    for (std::uint64_t instruction = upto(80); instruction > 0; --instruction) {
      std::vector<TraceBuilder::Piece> pieces;
      const AccessKind kind = upto(3) == 0 ? AccessKind::store : AccessKind::load;
      const std::uint64_t base = kind == AccessKind::store ? written : read;
      std::uint64_t at = upto(footprint - 1);
      for (std::uint64_t piece = upto(5) + 1; piece > 0 && at < footprint; --piece) {
        const std::uint64_t bytes = std::min(upto(300) + 1, footprint - at);
        pieces.push_back({base + at, static_cast<std::uint32_t>(bytes)});
        at += bytes + 1 + upto(200);
      }
      builder.add(pieces, kind);
    }
  }
  return builder.build();
}

}  // namespace dculab::sim::test
