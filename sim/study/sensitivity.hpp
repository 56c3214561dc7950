// Which figure of a machine would change an answer, and by how much it would have to differ.
//
//   flip       = the smallest change of one figure, up or down and within a range, at which the answer is another one:
//                the range is walked in equal steps of the logarithm, the first step with another answer is bisected
//   elasticity = d log(figure of the answer) / d log(figure of the machine), the answer staying the same
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/hardware/machine.hpp"

namespace dculab::sim {

inline constexpr int kFlipSteps = 8;  // of the range, each way

// How finely an answer is to follow a figure.
struct SensitivityOptions {
  double flip_resolution = 1e-4;                 // of a flip's factor
  double elasticity_step = 1e-4;                 // each way; of a count one
  std::function<void(double share)> progress{};  // of the figures, when one is done
};

struct Answer {
  std::string choice;  // "8 KV heads, block 16"
  double figure = 0;   // its step time, say; 0: nothing answers
};

using Question = std::function<Answer(const Machine&)>;

struct Flip {
  double factor = 1;  // of the figure
  double value = 0;   // what the figure is then, in core units
  std::string choice;
};

struct Sensitivity {
  std::string key;
  double value = 0;  // in core units
  double elasticity = 0;
  std::optional<Flip> down, up;
};

// Every figure that the machine states or a prior stands in for, and that can be scaled (figure_scale.hpp); those that
// change the answer first, the smallest change first, then by elasticity. Figures that change nothing are left out.
// Precondition: within > 1.
[[nodiscard]] std::vector<Sensitivity> sensitivities(const Machine& machine, const Question& question, double within,
                                                     const SensitivityOptions& options = {});

}  // namespace dculab::sim
