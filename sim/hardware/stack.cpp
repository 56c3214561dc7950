#include "sim/hardware/stack.hpp"

#include <algorithm>

namespace dculab::sim {
namespace {

template <class T>
[[nodiscard]] bool is_one_of(const std::vector<T>& list, const T& value) {
  return list.empty() || std::ranges::find(list, value) != list.end();
}

}  // namespace

bool is_for(const Stack& stack, const lower::Device& device) {
  const DeviceRange& range = stack.devices;
  return is_one_of(range.vendors, device.vendor) && is_one_of(range.isas, device.isa) &&
         is_one_of(range.compute_capabilities, device.compute_capability);
}

}  // namespace dculab::sim
