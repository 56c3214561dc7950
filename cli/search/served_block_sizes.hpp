// Which block size a search over served requests chooses, where it has several.
#pragma once

#include "cli/output/output.hpp"
#include "cli/search/search_summary.hpp"
#include "cli/search/sweep_space.hpp"

namespace dculab::cli {

// Of each machine, which of the points that are as its best but for the block size to take, by the objective over
// several draws of the requests, as `simulate` does: a line of the heading, and `block_sizes` of the JSON. Nothing
// where requests are not served or block sizes not swept.
void report_served_block_sizes(const SweepSpace& space, const SearchSummary& summary, int threads, Report& report);

}  // namespace dculab::cli
