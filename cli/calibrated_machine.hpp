// Says in a calibrated machine where its fitted figures come from.
#pragma once

#include <cstddef>

#include "sim/calibration/fit.hpp"

namespace dculab::cli {

// Cites every fitted parameter as measured on `num_steps` steps, so that the machine can be written.
void cite_fit(sim::Fit& fit, std::size_t num_steps);

}  // namespace dculab::cli
