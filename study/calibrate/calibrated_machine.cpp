#include "study/calibrate/calibrated_machine.hpp"

#include "config/machine_file.hpp"
#include "sim/calibration/parameters.hpp"

namespace dculab::study {

void cite_fit(sim::Machine& machine, const std::string& what) {
  for (const sim::Parameter& parameter : sim::parameters())
    if (sim::matters(machine, parameter))
      config::cite(machine, std::string(parameter.key), sim::Evidence::measured, "dculab: calibrated on " + what);
}

}  // namespace dculab::study
