// Runs the engine's tests with the vector instruction set that DCULAB_TEST_VECTOR_TARGET names ("AVX2") instead of the
// CPU's best. Exit code 77, "skipped", where this CPU or this build does not have it.
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string_view>
#include <vector>

#include "kernels/cpu/cpu_kernels.hpp"

namespace dculab::engine {
namespace {

[[maybe_unused]] const bool selected = [] {
  const char* wanted = std::getenv("DCULAB_TEST_VECTOR_TARGET");
  if (wanted == nullptr) return false;
  const std::vector<std::string_view> targets = kernels::cpu::vector_targets();
  if (std::find(targets.begin(), targets.end(), wanted) == targets.end()) {
    std::cerr << "skipped: no " << wanted << " on this CPU or in this build\n";
    std::_Exit(77);
  }
  kernels::cpu::select_vector_target(wanted);
  return true;
}();

}  // namespace
}  // namespace dculab::engine
