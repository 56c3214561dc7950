#include "cli/calibrated_machine.hpp"

#include <string>

#include "config/machine_file.hpp"

namespace dculab::cli {

void cite_fit(sim::Fit& fit, std::size_t num_steps) {
  for (const sim::FittedParameter& parameter : fit.parameters)
    config::cite(fit.machine, parameter.key, sim::Evidence::measured,
                 "dculab: calibrated on " + std::to_string(num_steps) + " measured steps");
}

}  // namespace dculab::cli
