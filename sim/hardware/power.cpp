#include "sim/hardware/power.hpp"

namespace dculab::sim {

std::vector<std::string> problems(const Power& power) {
  std::vector<std::string> found;
  if (power.idle && power.memory_bound && *power.memory_bound < *power.idle)
    found.emplace_back("power.memory_bound is below power.idle");
  if (power.memory_bound && power.compute_bound && *power.compute_bound < *power.memory_bound)
    found.emplace_back("power.compute_bound is below power.memory_bound");
  if (power.idle && power.compute_bound && *power.compute_bound < *power.idle)
    found.emplace_back("power.compute_bound is below power.idle");
  return found;
}

}  // namespace dculab::sim
