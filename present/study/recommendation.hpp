// Which KV heads and block size of a sweep to choose on a machine, and the table that shows why.
#pragma once

#include <optional>

#include "present/study/step_decision_fields.hpp"

namespace dculab::present {

// Adds the recommended block size, the KV heads where accuracy decides them, and how the alternatives compare, to the
// report; a line that there is nothing to choose when neither of the two varies. Returns the recommendation, where
// there is one. Precondition: models are not swept.
[[nodiscard]] std::optional<ReportedStepDecision> add_recommendation(const study::StepStudy& study, Report& report);

}  // namespace dculab::present
