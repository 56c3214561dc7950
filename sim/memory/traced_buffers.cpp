#include "sim/memory/traced_buffers.hpp"

#include <algorithm>

namespace dculab::sim {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kLargestAddress = std::uint64_t{1} << 36;  // 2^31 lines of 32 bytes
constexpr std::uint8_t kNobody = 0xff;

[[nodiscard]] bool stand_apart(std::vector<TracedBuffer> buffers) {
  const auto by_address = [](const TracedBuffer& a, const TracedBuffer& b) { return a.address < b.address; };
  std::sort(buffers.begin(), buffers.end(), by_address);
  std::uint64_t free_page = 0;
  for (const TracedBuffer& buffer : buffers) {
    if (buffer.address / kPage < free_page) return false;
    if (buffer.address >= kLargestAddress || buffer.bytes >= kLargestAddress - buffer.address) return false;
    free_page = (buffer.address + buffer.bytes + kPage - 1) / kPage;
  }
  return true;
}

[[nodiscard]] bool has_every_wave(const AddressTrace& trace) {
  const auto waves = static_cast<std::size_t>(trace.workgroups) * static_cast<std::size_t>(trace.waves_per_workgroup);
  const std::vector<std::size_t>& begin = trace.wave_begin;
  return begin.size() == waves + 1 && begin.front() == 0 && begin.back() == trace.accesses.size() &&
         std::is_sorted(begin.begin(), begin.end());
}

}  // namespace

RoleMap::RoleMap(const std::vector<TracedBuffer>& buffers) {
  for (const TracedBuffer& buffer : buffers) {
    const std::uint64_t first = buffer.address >> kPageBits;
    const std::uint64_t end = (buffer.address + buffer.bytes + kPage - 1) >> kPageBits;
    if (end > roles_.size()) roles_.resize(end, kNobody);
    std::fill(roles_.begin() + static_cast<std::ptrdiff_t>(first), roles_.begin() + static_cast<std::ptrdiff_t>(end),
              static_cast<std::uint8_t>(buffer.role));
  }
}

bool RoleMap::contains(std::uint64_t begin, std::uint64_t end) const {
  if (begin >= end || end > this->end()) return false;
  const auto first = roles_.begin() + static_cast<std::ptrdiff_t>(begin >> kPageBits);
  const auto last = roles_.begin() + static_cast<std::ptrdiff_t>((end - 1) >> kPageBits);
  return std::find(first, last + 1, kNobody) == last + 1;
}

std::vector<std::string> problems(const AddressTrace& trace) {
  const std::string kernel = "the trace of " + trace.kernel;
  if (trace.workgroups < 1 || trace.waves_per_workgroup < 1) return {kernel + " has no waves"};
  if (!has_every_wave(trace)) return {kernel + " does not say which accesses belong to which wave"};
  if (!stand_apart(trace.buffers)) return {kernel + " has buffers that share a page of 4 KiB or reach beyond 64 GiB"};
  const RoleMap roles(trace.buffers);
  for (std::size_t index = 0; index < trace.accesses.size(); ++index) {
    const WaveAccess& access = trace.accesses[index];
    if (!roles.contains(access.address, access.address + access.bytes))
      return {kernel + ": access " + std::to_string(index) + " is empty or lies outside every buffer"};
  }
  return {};
}

}  // namespace dculab::sim
