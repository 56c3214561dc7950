// What processes of this host pay to exchange values through memory that they share: how long a meeting takes, and
// all-reduces and all-to-alls of 1 KiB to 16 MiB.
#pragma once

#include <functional>
#include <vector>

#include "engine/probe/host_measurements.hpp"
#include "engine/probe/sampling.hpp"

namespace dculab::engine {

inline constexpr int kMostProbedRanks = 4;

// Of 2 up to `most_ranks` processes of one thread each, on CPUs of their own; nothing with fewer than 2. Forks: call it
// while the process has one thread. progress(share) may be empty.
[[nodiscard]] std::vector<ExchangeMeasurement> measure_exchanges(int most_ranks, const Effort& effort,
                                                                 const std::function<void(double share)>& progress);

}  // namespace dculab::engine
