// What requests see that one pool of replicas prefills and another decodes, simulated.
#pragma once

#include <optional>

#include "config/scenario_file.hpp"
#include "study/decide/replica_count.hpp"

namespace dculab::study {

// How the KV of a prompt crosses from one pool to the other, and how requests are routed.
struct PoolLink {
  sim::Deployment deployment;  // without replicas
  bool two_kinds = false;      // of machine: pools share no server
};

// As the scenario's deployment says, or over the machines' links. `decode`: of decode replicas where it is another
// kind. Throws InputError where KV cannot cross.
[[nodiscard]] PoolLink link_between(const config::Scenario& scenario, const ModelShape& model,
                                    const sim::Machine& prefill, const sim::Machine* decode);

struct Pools {
  const Tried& prefill;
  const Tried& decode;
  int prefill_replicas = 1, decode_replicas = 1;
};

// Both pools have the settings of an engine, with the decode layout's batch.
[[nodiscard]] sim::SimulatedServer pools_server(const Pools& pools, const PoolLink& link);

struct PoolsService {
  ReplicaService service;
  Seconds tpot;  // that the service level's share of the requests does not exceed
};

// Throws InputError for a request that can never be served. Precondition: problems() of the server are empty.
[[nodiscard]] PoolsService serve_pools(const sim::SimulatedServer& server, const RequestWorkload& workload,
                                       const ServiceLevel& slo);

// The time to first token of prompts that come one after the other, where it misses slo.ttft: no number of replicas is
// faster. Precondition: slo.ttft.
[[nodiscard]] std::optional<Seconds> missed_ttft_alone(sim::SimulatedServer server, RequestWorkload workload,
                                                       const ServiceLevel& slo);

}  // namespace dculab::study
