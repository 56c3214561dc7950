// What became of a profiler's kernels, and which names of kernels are known.
#pragma once

#include "present/output/report.hpp"
#include "study/calibrate/profile_import.hpp"

namespace dculab::present {

// The first row's step op by op, the kernels that serve no op, and of all rows what they took.
[[nodiscard]] Report import_report(const study::ImportedProfile& import);

// config::kernel_rules().
[[nodiscard]] Report kernel_rules_report();

}  // namespace dculab::present
