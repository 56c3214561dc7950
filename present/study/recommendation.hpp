// Which KV heads and block size of a sweep to choose on a machine, and the table that shows why.
#pragma once

#include "present/output/report.hpp"
#include "study/decide/step_study.hpp"

namespace dculab::present {

// Adds the recommended block size, the KV heads where accuracy decides them, and how the alternatives compare, to the
// report and to `json`; a line that there is nothing to choose when neither of the two varies. Precondition: models are
// not swept.
void add_recommendation(const study::StepStudy& study, Report& report, Json& json);

}  // namespace dculab::present
