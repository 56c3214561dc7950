// What a traced launch asked of its weights.
#pragma once

#include <algorithm>
#include <vector>

#include "core/address_trace.hpp"
#include "tests/support/catch.hpp"

namespace dculab::kernels::gpu {

struct WeightLoads {
  std::vector<int> of_byte;         // how often each byte of the weights was loaded
  bool is_sixteen_per_lane = true;  // every access was whole 16-byte pieces, no two lanes the same

  [[nodiscard]] bool all_are(int count) const {
    return std::all_of(of_byte.begin(), of_byte.end(), [count](int each) { return each == count; });
  }
};

inline WeightLoads weight_loads(const AddressTrace& trace) {
  const auto weights = std::find_if(trace.buffers.begin(), trace.buffers.end(),
                                    [](const TracedBuffer& buffer) { return buffer.role == OperandRole::weight; });
  REQUIRE(weights != trace.buffers.end());
  WeightLoads loads;
  loads.of_byte.resize(weights->bytes);
  for (const WaveAccess& access : trace.accesses) {
    if (access.address < weights->address || access.address >= weights->address + weights->bytes) continue;
    loads.is_sixteen_per_lane &= access.lane_bytes == access.bytes && access.bytes % 16 == 0;
    for (std::uint64_t i = 0; i < access.bytes; ++i) ++loads.of_byte.at(access.address - weights->address + i);
  }
  return loads;
}

}  // namespace dculab::kernels::gpu
