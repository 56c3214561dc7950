// The ways in which the host build may run the lanes of a kernel.
#pragma once

#include "kernels/gpu/runtime.hpp"
#include "tests/support/catch.hpp"

namespace dculab::kernels::gpu::host_build {

inline constexpr host::LaneOrder kLaneOrders[] = {host::LaneOrder::forward, host::LaneOrder::reversed,
                                                  host::LaneOrder::shuffled};

// body(options) for waves of 64 and 32 in each order of lanes.
template <typename Body>
void for_each_option(Body body) {
  for (const int wave_size : {64, 32})
    for (const host::LaneOrder order : kLaneOrders) {
      INFO("waves of " << wave_size << ", lane order " << static_cast<int>(order));
      body(host::HostOptions{.wave_size = wave_size, .order = order});
    }
}

inline int lane_in_wave(const host::HostOptions& options) { return thread_index() % options.wave_size; }

}  // namespace dculab::kernels::gpu::host_build
