// How fast can this core read memory? Vector loads over a buffer, in the shape that suits the memory level best.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dculab::kernels::cpu {

// How a thread walks through its part of the memory.
struct StreamShape {
  int streams = 1;         // places read in turn: 1, 2, 4 or 8
  int prefetch_bytes = 0;  // how far ahead software prefetches each line; 0 = left to the hardware
};

// Sizes given to read_memory are multiples of this.
inline constexpr std::size_t kReadGranule = 4096;

// Loads every byte of data[bytes] once per pass; returns the exclusive or of all of it, so that no load is left out.
[[nodiscard]] std::uint64_t read_memory(const std::byte* data, std::size_t bytes, int passes, StreamShape shape);

}  // namespace dculab::kernels::cpu
