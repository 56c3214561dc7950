// Figures of served requests: the same workload drawn several times says what is in a difference and what is chance.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/workload.hpp"
#include "study/decide/preference.hpp"

namespace dculab::study {

// The workload with other seeds, four in all, its own first; itself alone where nothing in it is drawn.
[[nodiscard]] std::vector<RequestWorkload> draws_of(const RequestWorkload& workload);

// What a choice comes to over the draws: the geometric mean of `figures`, one a draw, and how far each draw moves it.
// Of choices that served the same draws the difference is then one of pairs, and as uncertain as the mean of its pairs.
// A figure that is not positive: cannot be had.
[[nodiscard]] Evaluated over_draws(std::string value, std::span<const double> figures);

}  // namespace dculab::study
