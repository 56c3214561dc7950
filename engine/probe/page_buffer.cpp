#include "engine/probe/page_buffer.hpp"

#include <sys/mman.h>

#include <charconv>
#include <cstdint>
#include <fstream>
#include <new>
#include <sstream>
#include <string>

namespace dculab::engine {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

constexpr std::size_t round_up(std::size_t bytes) { return (bytes + kHugePage - 1) / kHugePage * kHugePage; }

// "7f00-7f80 rw-p ..." -> does the mapping hold `address`?
bool heads_mapping_of(const std::string& line, std::uintptr_t address) {
  std::uintptr_t begin = 0, end = 0;
  const char* const last = line.data() + line.size();
  const auto [dash, error] = std::from_chars(line.data(), last, begin, 16);
  if (error != std::errc() || dash == last || *dash != '-') return false;
  return std::from_chars(dash + 1, last, end, 16).ec == std::errc() && begin <= address && address < end;
}

}  // namespace

PageBuffer::PageBuffer(std::size_t bytes, PageSize pages) : mapped_(round_up(bytes) + kHugePage) {
  mapping_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping_ == MAP_FAILED) throw std::bad_alloc();
  const auto aligned = round_up(reinterpret_cast<std::uintptr_t>(mapping_));
  data_ = reinterpret_cast<std::byte*>(aligned);
  size_ = round_up(bytes);
  madvise(data_, size_, pages == PageSize::huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

PageBuffer::~PageBuffer() { munmap(mapping_, mapped_); }

double PageBuffer::huge_share() const {
  std::ifstream in("/proc/self/smaps");
  const auto address = reinterpret_cast<std::uintptr_t>(data_);
  bool inside = false;
  double resident = 0;
  for (std::string line; std::getline(in, line);) {
    if (heads_mapping_of(line, address)) inside = true;
    if (!inside) continue;
    std::istringstream fields(line);
    std::string key;
    double kilobytes = 0;
    if (!(fields >> key >> kilobytes)) continue;
    if (key == "Rss:") resident = kilobytes;
    if (key == "AnonHugePages:") return resident > 0 ? kilobytes / resident : 0;
  }
  return 0;
}

}  // namespace dculab::engine
