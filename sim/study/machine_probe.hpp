// What benchmarks of the hardware alone find: figures of a machine and the shares of them that are sustained.
//
//   copy         launch + slowest level's bytes / (bandwidth * share); the bytes, read and written, are touched again
//                and again, so that shared caches keep hit_probability() of them (sim/memory/hit_rate.hpp). `threads` a
//                unit that have one value of 8 bytes in flight each: at most units * threads * 8 B / latency of DRAM
//   cache_read   the same without the launch, and with private caches: each unit reads all of the bytes
//   cache_chase  one load after the other: the mean latency of the levels that answer
//   send         start + hop + bytes / (link * share), from one device to another
//   arithmetic   one FLOP at the highest rate of a format
//
// A floor is the same at the peaks, with caches that keep whatever fits; a chase has none. Of cache_read only the
// fastest level's is one: what several units read at the same time counts for each of them, and comes from below once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/dtype.hpp"
#include "core/units.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::sim {

enum class ProbeKind : std::uint8_t { copy, cache_read, cache_chase, send, arithmetic };

struct MachineProbe {
  ProbeKind kind = ProbeKind::copy;
  Bytes bytes{};                 // touched, or sent; 0: nothing but the launch
  std::optional<int> threads{};  // of a compute unit, of a copy; none: enough
  int devices = 1;               // that may send to one another
  Dtype dtype = Dtype::f32;      // of arithmetic
};

// Precondition of all: link_among(machine, probe.devices) for a send.
[[nodiscard]] Seconds probe_time(const Machine& machine, const MachineProbe& probe);
[[nodiscard]] Seconds probe_floor(const Machine& machine, const MachineProbe& probe);

// "launch", "latency", "exchange", "compute" or a memory level's name.
[[nodiscard]] std::string probe_bound(const Machine& machine, const MachineProbe& probe);

}  // namespace dculab::sim
