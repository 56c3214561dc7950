// What a machine's file leaves out and the prices use all the same.
#pragma once

#include <string>
#include <vector>

#include "sim/hardware/machine.hpp"

namespace dculab::study {

// The machine with every default that has a value of its own, cited as assumed: priors, ways, shares of a bandwidth.
[[nodiscard]] sim::Machine effective_machine(sim::Machine machine);

// What is done where there is no figure to take.
struct Absence {
  std::string key;      // "peaks.fp8_e4m3"
  std::string instead;  // "as f16"
  std::string why;
};

[[nodiscard]] std::vector<Absence> absences(const sim::Machine& machine);

}  // namespace dculab::study
