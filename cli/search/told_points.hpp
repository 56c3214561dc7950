// The points that the answer of a search tells: on which machine each is, how far its figures can be trusted, and what
// those of each machine lean on.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/output/output.hpp"
#include "cli/search/search_summary.hpp"
#include "sim/calibration/confidence.hpp"

namespace dculab::cli {

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
[[nodiscard]] PointTrusts trusts_of(const SweepSpace& space, const std::vector<KeptPoint>& told, int threads);

// `machine`, `basis`, `interval_seconds` or `step_time_interval`; of a point that is not told nothing.
void add_trust(const SweepSpace& space, const PointTrusts& trusts, std::uint64_t point, Json& json);

// Warns of what the engine refuses of their KV caches.
void warn_of_refused_kv(const SweepSpace& space, const std::vector<KeptPoint>& told, Report& report);

// `leans_on` and `machine_facts` of each machine, as the first of its points has it; notes below the last table.
void report_machines(const SweepSpace& space, const std::vector<KeptPoint>& told, const PointTrusts& trusts,
                     Report& report);

}  // namespace dculab::cli
