// What the requests of one replica see, simulated.
#pragma once

#include "core/workload.hpp"
#include "sim/serving/simulated_server.hpp"
#include "sim/study/serving_setting.hpp"

namespace dculab::study {

struct ReplicaService {
  double requests_per_second = 0;  // that arrive; 0: as they were recorded
  std::int64_t requests = 0;       // that were simulated
  int max_num_seqs = 0;            // of each scheduler
  double slo_attainment = 1;       // share of them within the service level
  Seconds ttft_p90{}, tpot_p90{}, latency_mean{};
  Seconds ttft{};  // that the service level's share of the requests does not exceed
};

// What the requests of `workload` saw.
[[nodiscard]] ReplicaService service_of(const ServingMetrics& metrics, const RequestWorkload& workload,
                                        const ServiceLevel& slo);

[[nodiscard]] bool has_limits(const ServiceLevel& slo);

// A replica alone, with `batch` sequences for each scheduler.
[[nodiscard]] sim::SimulatedServer replica_server(const sim::ServingCase& serving, const sim::Setting& setting,
                                                  int batch);

// With `batch` sequences for each scheduler. Throws InputError for a replica that cannot be simulated, and for a
// request that it can never serve.
[[nodiscard]] ReplicaService serve_requests(const sim::ServingCase& serving, const sim::Setting& setting, int batch,
                                            const RequestWorkload& workload, const ServiceLevel& slo);

// While the queue never empties.
struct FullService {
  double requests_per_second = 0;
  Seconds tpot{};  // median of all; filling and draining are in it
};

// Requests of the load's mean lengths (drawn ones would make the rate theirs) wait from the beginning, twice and three
// times as many as run at a time: filling and draining take as long in both runs, and the difference is what the engine
// does with a full batch.
[[nodiscard]] FullService serve_full(const sim::SimulatedServer& server, RequestWorkload workload,
                                     const sim::SteadyLoad& load);

// The first of them, one after the other for each of `ranks` groups with sequences of their own; one of those that are
// all alike.
[[nodiscard]] RequestWorkload one_by_one(RequestWorkload workload, int ranks);

// One request after the other: no number of replicas is faster.
[[nodiscard]] ReplicaService serve_alone(const sim::ServingCase& serving, const sim::Setting& setting, int batch,
                                         RequestWorkload workload, const ServiceLevel& slo);

// Whether the share of the requests within the service level may be as large as asked for: what so few of them leave
// open counts as met (one-sided, 95 %, normal approximation of the binomial).
[[nodiscard]] bool may_meet(const ReplicaService& service, const ServiceLevel& slo);

}  // namespace dculab::study
