// What a device draws.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/units.hpp"

namespace dculab::sim {

// Of one device, without the server around it. A step's energy needs all three (sim/cost/energy.hpp).
struct Power {
  std::optional<Watts> idle;           // a model in memory, clocks up, nothing running
  std::optional<Watts> memory_bound;   // DRAM streams at the rate that it sustains, and little is computed
  std::optional<Watts> compute_bound;  // matrix units busy: as a rule the limit of the board

  [[nodiscard]] bool is_stated() const { return idle && memory_bound && compute_bound; }
};

// What keeps the figures from being a device's, one sentence each.
[[nodiscard]] std::vector<std::string> problems(const Power& power);

}  // namespace dculab::sim
