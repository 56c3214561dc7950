// Measures one memory level at a time: how fast N threads read it together, and how long one load takes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/probe/page_buffer.hpp"
#include "engine/probe/sampling.hpp"
#include "engine/probe/topology.hpp"
#include "kernels/cpu/probe/read_stream.hpp"
#include "kernels/cpu/thread_pool.hpp"

namespace dculab::engine {

using Team = kernels::cpu::ThreadPool;

// Where the next load goes: somewhere in the same 2 MiB for a while, which any TLB covers, or anywhere in the set.
enum class Locality : std::uint8_t { nearby, anywhere };

class MemoryProbe {
 public:
  // Memory on pages of the given size, first touched by all threads of the largest team.
  MemoryProbe(const Topology& topology, PageSize pages, const Effort& effort, Team& largest_team);

  // All threads of the team together. Core's own cache: each thread reads its own set. Shared cache: all read one set,
  // each from another place on, so that it is the shared cache that serves them.
  [[nodiscard]] ReadRate read_cache(Bytes working_set, Sharing sharing, Team& team);

  // Threads take pieces of memory that has not been read for long, whoever is ready first.
  [[nodiscard]] ReadRate read_dram(Team& team);

  // Each thread reads its own set over and over, as one stream without software prefetch.
  [[nodiscard]] BytesPerSecond read_own_set(Bytes working_set, Team& team);

  // One thread follows pointers in random order, one stop per `stride` bytes.
  [[nodiscard]] Spread<Seconds> measure_latency(Bytes working_set, Bytes stride, Locality locality);

  // How long the last cache keeps a set that is not read, until other tenants have evicted all but 1/e of it: from the
  // time that one thread's next pass over it takes. 0 where that is hardly longer after 64 ms.
  [[nodiscard]] Seconds measure_retention_time(Bytes working_set);

  // All the memory that is read.
  [[nodiscard]] Bytes size() const { return Bytes(static_cast<double>(buffer_.size())); }
  [[nodiscard]] double huge_share() const { return buffer_.huge_share(); }

 private:
  BytesPerSecond read_next_window(Team& team, kernels::cpu::StreamShape shape);

  Effort effort_;
  PageBuffer buffer_;
  std::size_t next_window_ = 0;
};

}  // namespace dculab::engine
