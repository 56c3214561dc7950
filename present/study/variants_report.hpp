// A scenario's variants against its baseline, predicted, beside what was published about them.
#pragma once

#include "present/output/report.hpp"
#include "study/answer/comparison.hpp"

namespace dculab::present {

// Tables for each machine, and JSON (comparison_fields.hpp).
void add_comparisons(const config::Scenario& scenario, const study::ComparisonStudy& study, Report& report);

}  // namespace dculab::present
