// What speaks against relying on what a load is expected to see, and how many replicas leave no doubt.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "core/serving_metrics.hpp"
#include "core/workload.hpp"
#include "sim/serving/simulated_server.hpp"
#include "study/decide/expected_service.hpp"

namespace dculab::study {

// At the slow end of the interval too few requests meet the service level, or are served in time.
enum class Doubt : std::uint8_t { none, service_level, rate };
[[nodiscard]] Doubt doubt_of(const ExpectedService& expected, const ServiceLevel& slo);

inline constexpr int kDoubtTimes = 4;  // as many replicas are tried, at most

struct DoubtQuestion {
  const sim::SimulatedServer& server;  // a replica
  const ServiceLevel& slo;
  std::function<RequestWorkload(int replicas)> part_of;  // the requests of one of so many
  double slowest = 1;                                    // of ExpectedService
};

// The fewest replicas, more than `replicas` and at most `most`, with which no doubt is left: with every step as slow as
// it may be. Nothing where none do. Doubled, then bisected.
[[nodiscard]] std::optional<int> replicas_without_doubt(const DoubtQuestion& question, int replicas, int most);

}  // namespace dculab::study
