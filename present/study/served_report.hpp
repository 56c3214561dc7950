// How `validate --serving` shows our errors beside the rivals'.
#pragma once

#include "present/output/show.hpp"
#include "study/validate/served_fit.hpp"
#include "study/validate/served_runs.hpp"

namespace dculab::present {

// Tables of errors by rival and metric and by run, what is left out and why, and the rows; CSV is the rows.
void add_served(const study::ServedRuns& served, const study::ServedChoices& choices, Format format, Report& report);

// The same of experiments that were left out, and what the others taught.
void add_served_left_out(const study::ServedLeftOut& left_out, const study::ServedChoices& choices, Format format,
                         Report& report);

}  // namespace dculab::present
