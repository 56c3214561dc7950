// How long does one launch take on a device, when many follow each other?
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "kernels/gpu/device.hpp"

namespace dculab::engine {

struct DeviceEffort {
  Seconds sample;         // launches timed together take about this long: an event's own cost must not show
  int most_launches = 1;  // timed together
  int repeats = 1;        // of which the median counts
};

// A real device. A pause of the host must not show in the median.
inline constexpr DeviceEffort kDeviceEffort{Seconds(0.01), 500, 9};
// The host build, lane by lane: each launch once, its time means nothing.
inline constexpr DeviceEffort kEmulationEffort{Seconds(), 1, 1};

// Between the device's events around `launches` calls of launch(index), index counting on from `first`.
template <typename Launch>
[[nodiscard]] Seconds time_launches(kernels::gpu::Device& device, int first, int launches, Launch&& launch) {
  const auto start = device.make_mark(), end = device.make_mark();
  device.record(*start);
  for (int index = first; index < first + launches; ++index) launch(index);
  device.record(*end);
  return device.between(*start, *end);
}

// Of one launch. launch(index) may take other memory for another index, so that no cache holds what it reads.
template <typename Launch>
[[nodiscard]] Seconds median_launch_time(kernels::gpu::Device& device, const DeviceEffort& effort, Launch&& launch) {
  (void)time_launches(device, 0, 1, launch);  // the first launch loads the kernel
  const Seconds once = time_launches(device, 1, 1, launch);
  const double wanted = once.value() > 0 ? std::ceil(effort.sample / once) : effort.most_launches;
  const int launches = static_cast<int>(std::clamp(wanted, 1.0, static_cast<double>(effort.most_launches)));
  std::vector<Seconds> times;
  for (int repeat = 0, first = 2; repeat < effort.repeats; ++repeat, first += launches)
    times.push_back(time_launches(device, first, launches, launch) / launches);
  std::nth_element(times.begin(), times.begin() + effort.repeats / 2, times.end());
  return times[static_cast<std::size_t>(effort.repeats / 2)];
}

}  // namespace dculab::engine
