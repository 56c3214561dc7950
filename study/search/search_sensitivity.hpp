// Which figure of the best point's machine would make another point the best.
#pragma once

#include <string>
#include <vector>

#include "sim/study/sensitivity.hpp"
#include "study/search/search_summary.hpp"

namespace dculab::study {

struct SearchSensitivity {
  sim::Machine machine;  // of the best point
  std::string choice;    // the best point's
  std::vector<sim::Sensitivity> figures;
  double within = 1;           // the largest factor by which they were changed
  double tie = 0;              // an answer is another one where it is better by more than this share
  std::size_t contenders = 0;  // points that were compared
};

// Figures change by at most a factor of `within` each way. The points are the summary's contenders, served on `threads`
// threads; those on other machines stay as they are. Precondition: summary.best() is not empty.
[[nodiscard]] SearchSensitivity search_sensitivity(const SweepSpace& space, const SearchSummary& summary, double within,
                                                   int threads, const SearchProgress& progress = {});

}  // namespace dculab::study
