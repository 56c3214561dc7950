// Which axes of a sweep would change nothing: somebody waits for what they should do.
#pragma once

#include "config/scenario_file.hpp"

namespace dculab::study {

// Throws InputError for an axis that no figure of a point depends on: of a step what only schedules requests, of both
// what is asked about the points.
void refuse_idle_axes(const config::Scenario& scenario);

}  // namespace dculab::study
