// What the requests of a load see with all that is recommended, and how much of a device's memory it takes.
#pragma once

#include <cstdint>
#include <optional>

#include "core/workload.hpp"
#include "sim/calibration/input_sensitivity.hpp"
#include "sim/serving/simulated_server.hpp"
#include "sim/study/serving_setting.hpp"

namespace dculab::study {

struct ExpectedFigure {
  double value = 0, low = 0, high = 0;  // 90 % interval; latencies in seconds
};

struct ExpectedService {
  ExpectedFigure ttft_p90, tpot_p90;
  ExpectedFigure requests_per_second;      // that are served
  ExpectedFigure slo_attainment{1, 1, 1};  // share of the requests that meet the service level
  std::int64_t requests = 0;               // that were simulated
  double slowest = 1;                      // a step's time at the slow end of the intervals, over its price
  // Of a replica, in requests per second: what arrives, and what it serves at the slow end while its queue never
  // empties. Absent for pools and for recorded requests.
  double arriving = 0;
  std::optional<double> slowest_rate{};
  // As far as the machine's file states power and price.
  std::optional<ExpectedFigure> joules_per_output_token{}, usd_per_million_tokens{};
};

// Simulated three times: as steps are priced, and at both ends of what they may be wrong by (serving_intervals).
[[nodiscard]] ExpectedService expected_service(const sim::SimulatedServer& server, const RequestWorkload& workload,
                                               const ServiceLevel& slo);

// Of a device's memory. A program takes its share whole: what weights, activations and max_num_seqs leave of it holds
// more KV, and what the program needs besides (contexts, buffers of collectives, graphs), which nothing here counts.
struct MemoryShare {
  double needed = 0;     // by weights, activations and max_num_seqs of the longest request
  double chosen = 0;     // vLLM's gpu_memory_utilization: what the program takes by itself
  double unmanaged = 0;  // of activations and buffers, which SGLang's mem-fraction-static does not count
};

// Precondition: the setting serves options.max_num_seqs sequences for each scheduler of a replica.
[[nodiscard]] MemoryShare memory_share(const sim::ServingCase& serving, const sim::Setting& setting,
                                       const EngineOptions& options, int longest_request);

}  // namespace dculab::study
