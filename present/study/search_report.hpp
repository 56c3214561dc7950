// How the answer of a search is told.
#pragma once

#include <string>

#include "present/output/report.hpp"
#include "study/search/search_answer.hpp"

namespace dculab::present {

// CSV of points: the head, and the rows of a chunk whose first point is `begin`.
[[nodiscard]] std::string points_head(const study::SweepSpace& space);
[[nodiscard]] std::string points_rows(const study::SweepSpace& space, std::uint64_t begin,
                                      const config::SearchChunk& chunk);

// The best points, the best of each value and of each group and block size, the front, and what would change the answer
// where that was asked.
void report_search(const study::SweepSpace& space, const study::SearchSummary& summary,
                   const study::SearchAnswer& answer, Report& report);

}  // namespace dculab::present
