// To which inferred and assumed figures an answer is sensitive: the same times again, with each of them a tenth less
// and a tenth more.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::sim {

inline constexpr double kSensitivityStep = 0.10;   // by which a figure is changed
inline constexpr double kLeastSensitivity = 0.01;  // change of the times that is worth telling

// The times of an answer on a machine; always equally many, in the same order, none of them zero.
using Prices = std::function<std::vector<Seconds>(const Machine&)>;

struct InputSensitivity {
  std::string key;    // as in the machine file: "memory.L2.bandwidth"
  double change = 0;  // of the times, mean over them; of a tenth less and a tenth more the one that changes more
};

// Figures that were neither published nor measured: those that the machine's file marks so, then the priors of what it
// leaves out.
[[nodiscard]] std::vector<std::string> assumed_keys(const Machine& machine);

// Of all assumed figures that can be scaled (see figure_scale.hpp), the one that matters most first.
[[nodiscard]] std::vector<InputSensitivity> input_sensitivities(const Machine& machine, const Prices& prices);

}  // namespace dculab::sim
