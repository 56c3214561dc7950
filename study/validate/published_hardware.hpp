// Published points of the hardware alone, and of exchanges: what they are priced as.
#pragma once

#include "config/points_file.hpp"
#include "sim/hardware/machine.hpp"
#include "sim/study/measured_run.hpp"

namespace dculab::study {

// Of a kind that is_of_hardware. Both throw InputError with the reason why there is no price.
[[nodiscard]] sim::MeasuredRun hardware_run(const config::PublishedPoint& point, const sim::Machine& machine);

[[nodiscard]] sim::MeasuredRun all_reduce_run(const config::PublishedPoint& point, const sim::Machine& machine);

}  // namespace dculab::study
