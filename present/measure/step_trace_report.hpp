// How `bench` shows the steps of a grid.
#pragma once

#include "model/trace.hpp"
#include "present/output/report.hpp"

namespace dculab::present {

// A row for each step of the trace, all sequences of which are alike.
[[nodiscard]] Report step_trace_report(const Trace& trace);

}  // namespace dculab::present
