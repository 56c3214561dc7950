// How long does one step take that cannot start before the last has ended: a load for latency, an add for the clock?
#pragma once

#include <cstddef>
#include <cstdint>

namespace dculab::kernels::cpu {

// Fills data[bytes] with one pointer per `stride` bytes such that following them visits all in one cycle that no
// prefetcher foresees: windows in random order, and in random order within a window. One window as large as the data
// makes every stop a new page; a small one keeps address translation out of the way. `stride` is a multiple of a
// pointer's size and divides `window`; a rest smaller than a window is left out.
void link_random_cycle(std::byte* data, std::size_t bytes, std::size_t stride, std::size_t window);

// Follows `steps` pointers of a linked cycle from `start`; returns where it ends.
[[nodiscard]] const std::byte* follow_pointers(const std::byte* start, std::int64_t steps);

// Does `steps` additions of registers, each needing the last, at one per cycle on every current core.
std::uint64_t add_dependent(std::int64_t steps);

}  // namespace dculab::kernels::cpu
