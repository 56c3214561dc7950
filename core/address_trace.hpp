// Every access of one kernel launch to global memory, wave by wave: recorded by the host build of the GPU kernels,
// replayed through a machine's caches by sim/memory/cache_replay.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/op.hpp"

namespace dculab {

// A tensor that the kernel was given. Buffers stand one after another in an address space of the trace's own, each on
// a page (4 KiB) of its own, so that a trace does not depend on where the host's memory happened to be.
struct TracedBuffer {
  OperandRole role = OperandRole::activation;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
};

enum class AccessKind : std::uint8_t { load, store };

// One contiguous range that the lanes of a wave touch with one instruction. Lanes that continue each other, or touch
// the same bytes, are one range; an instruction whose lanes are scattered has several.
struct WaveAccess {
  std::uint64_t address = 0;      // first byte
  std::uint32_t bytes = 0;        // distinct bytes of the range
  std::uint32_t lane_bytes = 0;   // bytes the lanes asked for: more than `bytes` where lanes overlap
  std::uint32_t instruction = 0;  // of this wave, ascending; ranges of one instruction carry the same number
  AccessKind kind = AccessKind::load;
};

struct AddressTrace {
  std::string kernel;
  int wave_size = 64;
  int waves_per_workgroup = 1;
  int workgroups = 0;
  std::vector<TracedBuffer> buffers;
  std::vector<WaveAccess> accesses;     // by workgroup, then wave, then in the order the wave made them
  std::vector<std::size_t> wave_begin;  // [workgroups * waves_per_workgroup + 1], into `accesses`
};

}  // namespace dculab
