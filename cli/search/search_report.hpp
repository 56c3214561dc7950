// How the answer of a search is told.
#pragma once

#include <string>

#include "cli/output/output.hpp"
#include "cli/search/search.hpp"
#include "cli/search/search_summary.hpp"

namespace dculab::cli {

// CSV of points: the head, and the rows of a chunk whose first point is `begin`.
[[nodiscard]] std::string points_head(const SweepSpace& space);
[[nodiscard]] std::string points_rows(const SweepSpace& space, std::uint64_t begin, const config::SearchChunk& chunk);

// The best points, the best of each value and of each group and block size, the front, and with --sensitivity what
// would change the answer.
void report_search(const SweepSpace& space, const SearchSummary& summary, const SearchOptions& options, Report& report);

}  // namespace dculab::cli
