#include "engine/memory/anonymous_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <limits>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "core/error.hpp"

namespace dculab::engine {
namespace {

constexpr std::size_t kPageBytes = std::size_t{2} << 20;

std::optional<double> number_in(const char* path) {
  std::ifstream file(path);
  double value = 0;
  if (file >> value) return value;
  return std::nullopt;  // absent, or "max"
}

// MemAvailable of /proc/meminfo, given in KiB.
std::optional<Bytes> kernel_estimate() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  double kibibytes = 0;
  std::string unit;
  while (file >> key >> kibibytes) {
    std::getline(file, unit);
    if (key == "MemAvailable:") return kibibytes * kKiB;
  }
  return std::nullopt;
}

// Control group v2. Page cache counts as used there although it can be dropped, so it is given back.
std::optional<Bytes> control_group_room() {
  const auto limit = number_in("/sys/fs/cgroup/memory.max");
  const auto used = number_in("/sys/fs/cgroup/memory.current");
  if (!limit || !used) return std::nullopt;
  double reclaimable = 0;
  std::ifstream file("/sys/fs/cgroup/memory.stat");
  std::string key;
  double value = 0;
  while (file >> key >> value)
    if (key == "inactive_file" || key == "active_file") reclaimable += value;
  return Bytes(std::max(0.0, *limit - *used + reclaimable));
}

std::string gibibytes(Bytes size) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f GiB", size / kGiB);
  return text;
}

}  // namespace

AnonymousMemory::AnonymousMemory(std::size_t size_bytes) {
  if (size_bytes == 0) return;
  const std::size_t rounded = (size_bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  // One page more than needed, so that a 2 MB boundary lies inside; the ends are given back.
  void* address =
      ::mmap(nullptr, rounded + kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) throw std::bad_alloc();
  auto* const start = static_cast<std::byte*>(address);
  const std::size_t misalignment = reinterpret_cast<std::uintptr_t>(start) % kPageBytes;
  const std::size_t before = misalignment == 0 ? 0 : kPageBytes - misalignment;
  if (before > 0) ::munmap(start, before);
  if (before < kPageBytes) ::munmap(start + before + rounded, kPageBytes - before);
  data_ = start + before;
  size_bytes_ = rounded;
  ::madvise(data_, size_bytes_, MADV_HUGEPAGE);  // only a wish: without it the pages are 4 KB
}

AnonymousMemory::AnonymousMemory(AnonymousMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_bytes_(std::exchange(other.size_bytes_, 0)) {}

AnonymousMemory& AnonymousMemory::operator=(AnonymousMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

AnonymousMemory::~AnonymousMemory() {
  if (data_ != nullptr) ::munmap(data_, size_bytes_);
}

Bytes available_memory() {
  const Bytes unlimited{std::numeric_limits<double>::infinity()};
  return std::min(kernel_estimate().value_or(unlimited), control_group_room().value_or(unlimited));
}

void require_memory(const char* what, Bytes needed, const char* advice) {
  const Bytes available = available_memory();
  if (needed <= available) return;
  throw InputError(std::string(what) + " needs " + gibibytes(needed) + ", but only " + gibibytes(available) +
                   " of memory is available; " + advice);
}

}  // namespace dculab::engine
