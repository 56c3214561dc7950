// Says in a calibrated machine where its fitted figures come from.
#pragma once

#include <string>

#include "sim/hardware/machine.hpp"

namespace dculab::study {

// Cites every fitted parameter as measured on `what` ("40 measured steps"), so that the machine can be written.
void cite_fit(sim::Machine& machine, const std::string& what);

}  // namespace dculab::study
