// Memory on pages of a chosen size, to be read at full speed.
#pragma once

#include <cstddef>

#include "engine/probe/host_measurements.hpp"

namespace dculab::engine {

class PageBuffer {
 public:
  // Whole 2 MB units, at least `bytes`. Throws std::bad_alloc when there is not that much memory.
  // Nothing is touched yet: the first thread to write a page decides where it lies.
  PageBuffer(std::size_t bytes, PageSize pages);
  ~PageBuffer();
  PageBuffer(const PageBuffer&) = delete;
  PageBuffer& operator=(const PageBuffer&) = delete;

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }

  // Share of the touched memory that lies on huge pages, as /proc/self/smaps counts it; 0 where that is absent.
  [[nodiscard]] double huge_share() const;

 private:
  void* mapping_ = nullptr;
  std::size_t mapped_ = 0;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace dculab::engine
