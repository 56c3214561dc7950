// Which groups of published points share what a fit learns, and how much each may add.
//
//            host times  vendor  family  machine  program  stack  program   stack      program     source
//                                                                 on vendor  on vendor  for family
//   device               1       1/2     1/2
//   kernels              1/2                                      0.7        1/2        1
//   program                                                       1          1/2
//   host     1                                    1        1/2
//   time, of a source that tells clock states                                                       0.07, 0.3
//
// in shares of the prior's own width (sim/calibration/parameters.hpp). Vendors share host times alone; two that build
// one instruction set (gfx906) share that family's figures, too. What a library reaches is mostly a matter of the
// instruction set that it was written for, and what an old stack of a program reaches is told apart from today's.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/calibration/crossed_effects.hpp"
#include "sim/calibration/parameters.hpp"
#include "sim/hardware/machine.hpp"
#include "sim/study/point_intervals.hpp"

namespace dculab::sim {

// A group, and what a prediction does not share with the points when it is left out.
struct PointGroup {
  CrossedGroup group;  // [parameters() and the time]
  std::optional<Distance> distance{};
};

[[nodiscard]] std::string vendor_name(const Machine& machine);

[[nodiscard]] PointGroup group_of_program(const Stack& stack);
[[nodiscard]] PointGroup group_of_program_on_vendor(const Machine& machine);
[[nodiscard]] PointGroup group_of_stack(const Stack& stack);
[[nodiscard]] PointGroup group_of_stack_on_vendor(const Machine& machine);
// `clock`: the state that the source tells, "" if none.
[[nodiscard]] PointGroup group_of_source(const std::string& source, const std::string& clock);

// Of the device; of the device and of `machine.stack` that runs there; of the stack on a device of which nothing is
// known.
[[nodiscard]] std::vector<PointGroup> groups_of_device(const Machine& machine);
[[nodiscard]] std::vector<PointGroup> groups_of(const Machine& machine);
[[nodiscard]] std::vector<PointGroup> groups_anywhere(const Stack& stack);

// What groups add, over those of them that the fit has.
[[nodiscard]] std::vector<double> sum_of(const Effects& effects, const std::vector<PointGroup>& groups);

// `machine` with each figure times exp(theta), of one that was measured on the machine itself with a part of theta.
[[nodiscard]] Machine moved(const Machine& machine, std::vector<double> theta);

// That part: 1 of a figure that was not measured.
[[nodiscard]] double freedom(const Machine& machine, const Parameter& parameter);

}  // namespace dculab::sim
