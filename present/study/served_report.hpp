// How `validate --serving` shows our errors beside the rivals'.
#pragma once

#include "present/output/report.hpp"
#include "study/validate/served_fit.hpp"
#include "study/validate/served_runs.hpp"

namespace dculab::present {

// Tables of errors by rival and metric and by run, what is left out and why, and the rows; CSV is the rows.
[[nodiscard]] Report served_report(const study::ServedRuns& served, const study::ServedChoices& choices);

// The same of experiments that were left out, and what the others taught.
[[nodiscard]] Report served_left_out_report(const study::ServedLeftOut& left_out, const study::ServedChoices& choices);

}  // namespace dculab::present
