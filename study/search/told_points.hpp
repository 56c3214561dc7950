// The points that the answer of a search tells: on which machine each is, and how far its figures can be trusted.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/calibration/confidence.hpp"
#include "sim/calibration/leanings.hpp"
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
[[nodiscard]] std::vector<KeptPoint> told_points(const SearchSummary& summary);

// On so many threads, for requests are served once more.
[[nodiscard]] PointTrusts trusts_of(const SweepSpace& space, const std::vector<KeptPoint>& told, int threads,
                                    const SearchProgress& progress = {});

// The time of the step, or of the steps that serve the requests, by phase: on any machine.
[[nodiscard]] sim::Prices prices_of(const SweepCase& asked);

// What the engine refuses of their KV caches, in words; a reason may come several times.
[[nodiscard]] std::vector<std::string> refused_kv(const SweepSpace& space, const std::vector<KeptPoint>& told);

}  // namespace dculab::study
