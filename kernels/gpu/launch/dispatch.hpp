// From a number that is known at run time to the kernel that was compiled for it.
#pragma once

#include <stdexcept>
#include <string>

namespace dculab::kernels::gpu {

// Calls function.operator()<kCount>() for the one of kCounts that is `count`.
template <int... kCounts, typename Function>
void with_count(int count, Function function) {
  const bool found = ((count == kCounts && (function.template operator()<kCounts>(), true)) || ...);
  if (!found) throw std::logic_error("no kernel is compiled for " + std::to_string(count));
}

}  // namespace dculab::kernels::gpu
