// Which figure of the best point's machine would make another point the best.
#pragma once

#include "cli/output/output.hpp"
#include "cli/search/search_summary.hpp"

namespace dculab::cli {

// Adds the table and the JSON. Among the summary's contenders, served on `threads` threads; those on other machines
// stay as they are. Precondition: summary.best() is not empty.
void report_sensitivity(const SweepSpace& space, const SearchSummary& summary, double within, int threads,
                        Report& report);

}  // namespace dculab::cli
