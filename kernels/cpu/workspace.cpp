#include <cstdint>

#include "kernels/cpu/cpu_kernels.hpp"

namespace dculab::kernels::cpu {

float* Workspace::floats(std::size_t count) {
  constexpr std::size_t kLineFloats = 64 / sizeof(float);
  if (storage_.size() < count + kLineFloats) storage_.resize(count + kLineFloats);
  const auto address = reinterpret_cast<std::uintptr_t>(storage_.data());
  return storage_.data() + ((64 - address % 64) % 64) / sizeof(float);
}

}  // namespace dculab::kernels::cpu
