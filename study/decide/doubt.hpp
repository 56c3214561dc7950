// What speaks against relying on what a load is expected to see, and how many replicas leave no doubt.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "core/serving_metrics.hpp"
#include "core/workload.hpp"
#include "sim/serving/simulated_server.hpp"
#include "sim/study/serving_setting.hpp"
#include "study/decide/expected_service.hpp"
#include "study/decide/replica_count.hpp"

namespace dculab::study {

// At the slow end of the intervals too few requests meet the service level, or requests come faster than they are
// served.
enum class Doubt : std::uint8_t { none, service_level, rate };
[[nodiscard]] Doubt doubt_of(const ExpectedService& expected, const ServiceLevel& slo);

// Replicas of one kind that are given requests at a rate.
struct DoubtQuestion {
  const sim::SimulatedServer& server;  // a replica
  const sim::SteadyLoad& load;         // the means of its requests
  const ServiceLevel& slo;
  std::function<RequestWorkload(int replicas, Sample sample)> part_of;  // the requests of one of so many
  double slowest = 1;                                                   // ExpectedService::slowest
};

// Requests per second that a replica serves with every step as slow as it may be, while its queue never empties.
[[nodiscard]] double slowest_rate(const DoubtQuestion& question);

// The search ends at this many times the replicas that are in doubt.
inline constexpr int kDoubtTimes = 4;

// The fewest replicas, more than `replicas` and at most `most`, that serve their requests within the service level with
// every step as slow as it may be. `rate`: slowest_rate. Nothing where none do. Few requests say about how many
// (doubled, then bisected), many requests decide. Precondition: `replicas` do not.
[[nodiscard]] std::optional<int> replicas_without_doubt(const DoubtQuestion& question, double rate, int replicas,
                                                        int most);

}  // namespace dculab::study
