// What the requests of a load see with all that is recommended, and how much of a device's memory it takes.
#pragma once

#include <optional>

#include "core/workload.hpp"
#include "sim/calibration/input_sensitivity.hpp"
#include "sim/serving/simulated_server.hpp"
#include "sim/study/serving_setting.hpp"

namespace dculab::study {

struct ExpectedFigure {
  Seconds value, low, high;  // 90 % interval
};

struct ExpectedService {
  ExpectedFigure ttft_p90, tpot_p90;
  double slo_attainment = 1;  // share of the requests that meet the service level
  // As far as the machine's file states power and price.
  std::optional<double> joules_per_output_token{}, usd_per_million_tokens{};
};

// Simulated three times: as steps are priced, and at both ends of what they may be wrong by (serving_intervals).
[[nodiscard]] ExpectedService expected_service(const sim::SimulatedServer& server, const RequestWorkload& workload,
                                               const ServiceLevel& slo);

// Of a device's memory, for vLLM's gpu_memory_utilization.
struct MemoryShare {
  double set = 0;     // what the recommendation is made with
  double needed = 0;  // by weights, activations and max_num_seqs sequences of full length
};

// Precondition: the setting serves `batch` sequences for each scheduler of a replica.
[[nodiscard]] MemoryShare memory_share(const sim::ServingCase& serving, const sim::Setting& setting,
                                       const EngineOptions& options);

}  // namespace dculab::study
