// Large zeroed buffers in 2 MB pages, and how much memory is left for them.
#pragma once

#include <cstddef>

#include "core/units.hpp"

namespace dculab::engine {

// Zero-filled memory that asks for 2 MB pages: weights and KV cache are streamed, and 4 KB pages cost about a tenth of
// the DRAM bandwidth in address translation. Physical pages appear at first touch.
class AnonymousMemory {
 public:
  AnonymousMemory() = default;
  // Throws std::bad_alloc when the address space cannot be had. Callers check available_memory() first.
  explicit AnonymousMemory(std::size_t size_bytes);
  AnonymousMemory(AnonymousMemory&& other) noexcept;
  AnonymousMemory& operator=(AnonymousMemory&& other) noexcept;
  ~AnonymousMemory();

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t size_bytes() const { return size_bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_bytes_ = 0;
};

// What lies in one buffer begins at whole cache lines.
inline constexpr std::size_t kCacheLineBytes = 64;

[[nodiscard]] constexpr std::size_t rounded_to_line(std::size_t bytes) {
  return (bytes + kCacheLineBytes - 1) / kCacheLineBytes * kCacheLineBytes;
}

// Memory this process can still take without swapping: the smaller of the kernel's estimate and the limit of the
// control group. Infinite where neither can be read.
[[nodiscard]] Bytes available_memory();

// Throws InputError when `what` of `needed` bytes exceeds available_memory(); `advice` says what to do.
void require_memory(const char* what, Bytes needed, const char* advice);

}  // namespace dculab::engine
