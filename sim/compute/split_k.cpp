#include "sim/compute/split_k.hpp"

#include <cmath>

namespace dculab::sim {

Parallelism split_along_k(const Machine& machine, const Parallelism& whole, double parts) {
  Parallelism result = whole;
  result.workgroups = whole.workgroups * parts;
  result.rounds = std::ceil(result.workgroups / places(machine, whole));
  result.concurrent = result.workgroups / result.rounds;
  result.active_units = units_of(machine, result.workgroups);
  result.busy_simds = busy_simds(machine, result);
  return result;
}

}  // namespace dculab::sim
