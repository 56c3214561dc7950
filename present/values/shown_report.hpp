// Every effective value of a machine, a stack, a model or a scenario, and where it came from.
#pragma once

#include "present/output/report.hpp"
#include "study/scenario/shown.hpp"

namespace dculab::present {

// Of a scenario: what the file says, then the defaults that it leaves in force.
[[nodiscard]] Report shown_report(const study::Shown& shown);

}  // namespace dculab::present
