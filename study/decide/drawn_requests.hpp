// Figures of served requests: the same workload drawn several times says what is in a difference and what is chance.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
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

// Which of several choices, the preferred first, by what they come to over the draws.
struct DrawnVerdict {
  std::vector<Evaluated> evaluated;
  Verdict verdict;
};

// Which block size, of points that are alike but for it.
struct ServedBlockSizes {
  std::string machine;
  int kv_heads = 0;
  DrawnVerdict blocks;
};

// The figure of a choice with a draw: more is better; 0: cannot be had.
using DrawnFigure = std::function<double(std::size_t choice, std::size_t draw)>;

// Each of `threads` threads takes figures from a function of its own, from `make_figure`. Nothing where no choice can
// be had.
[[nodiscard]] std::optional<DrawnVerdict> decide_over_draws(const std::vector<std::string>& choices, std::size_t draws,
                                                            const std::function<DrawnFigure()>& make_figure,
                                                            int threads);

}  // namespace dculab::study
