// What a search answers beside its summary: the points that it tells, how far their figures can be trusted, what the
// engine refuses of them, block sizes decided over draws, and what would change the answer.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/calibration/confidence.hpp"
#include "sim/calibration/input_sensitivity.hpp"
#include "study/search/block_sizes.hpp"
#include "study/search/search_sensitivity.hpp"
#include "study/search/search_summary.hpp"

namespace dculab::study {

inline constexpr std::size_t kShownBest = 10;
inline constexpr std::size_t kShownFront = 50;

// 90 % interval of the step's time in seconds; of served requests that of their steps' times over their prices.
struct PointTrust {
  std::string machine;
  double low = 0;
  double high = 0;
  sim::Basis basis = sim::Basis::priors;
};

// By the point's number.
using PointTrusts = std::map<std::uint64_t, PointTrust>;

// Those that tables show, each once: the best ones, the best with each value, the front.
[[nodiscard]] std::vector<KeptPoint> reported_points(const SearchSummary& summary);

// On `threads` threads, for requests are served once more.
[[nodiscard]] PointTrusts trusts_of(const SweepSpace& space, const std::vector<KeptPoint>& reported, int threads,
                                    const SearchProgress& progress = {});

struct SearchAnswer {
  std::vector<KeptPoint> reported;   // those that tables show, each once
  PointTrusts trusts;                // of these
  std::vector<std::string> refused;  // what the engine refuses of their KV caches; a reason may come several times
  std::vector<ServedBlockSizes> block_sizes;
  std::optional<SearchSensitivity> sensitivity{};  // where it is asked for and there is a best point
};

struct AnswerOptions {
  int threads = 1;
  std::optional<double>
      sensitivity_within{};  // the largest factor by which a machine's figures change; none: not asked
};

[[nodiscard]] SearchAnswer answer_search(const SweepSpace& space, const SearchSummary& summary,
                                         const AnswerOptions& options, const SearchProgress& progress = {});

// The time of the step, or of the steps that serve the requests, by phase: on any machine.
[[nodiscard]] sim::Prices prices_of(const SweepCase& asked);

}  // namespace dculab::study
