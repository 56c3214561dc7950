// Which block size a search over served requests chooses, where it has several.
#pragma once

#include <vector>

#include "study/decide/drawn_requests.hpp"
#include "study/search/search_summary.hpp"

namespace dculab::study {

// Of each machine, for the points that are as its best but for the block size: which to take, by the objective over
// several draws of the requests, as `simulate` does. Empty where requests are not served, block sizes are not swept, or
// nothing is best.
[[nodiscard]] std::vector<ServedBlockSizes> served_block_sizes(const SweepSpace& space, const SearchSummary& summary,
                                                               int threads);

}  // namespace dculab::study
