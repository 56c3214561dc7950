#include "study/decide/pool_service.hpp"

#include <algorithm>
#include <utility>

#include "study/decide/serving_case.hpp"
#include "study/scenario/refuse.hpp"
#include "study/scenario/resolve.hpp"

namespace dculab::study {

PoolLink link_between(const config::Scenario& scenario, const ModelShape& model, const sim::Machine& prefill,
                      const sim::Machine* decode) {
  PoolLink link{scenario.deployment, decode != nullptr};
  sim::Deployment smallest = link.deployment;
  smallest.prefill_replicas = smallest.decode_replicas = 1;
  const EngineOptions options = resolve_options(scenario, model, prefill);
  refuse_deployment(scenario, sim::problems(smallest, prefill, model, options, decode));
  if (decode != nullptr) link.deployment = sim::with_link_between(link.deployment, prefill, *decode);
  return link;
}

sim::SimulatedServer pools_server(const Pools& pools, const PoolLink& link) {
  sim::SimulatedServer server =
      replica_server(pools.prefill.serving, pools.prefill.layout.setting, pools.decode.layout.served.batch);
  server.deployment = link.deployment;
  server.deployment.prefill_replicas = pools.prefill_replicas;
  server.deployment.decode_replicas = pools.decode_replicas;
  server.deployment.prefill = pools.prefill.layout.devices;
  server.deployment.decode = pools.decode.layout.devices;
  if (link.two_kinds) server.decode_machine = pools.decode.serving.machine;
  return server;
}

PoolsService serve_pools(const sim::SimulatedServer& server, const RequestWorkload& workload, const ServiceLevel& slo) {
  const ServingMetrics metrics = sim::simulate(server, workload, slo).metrics;
  return {.service = service_of(metrics, workload, slo),
          .tpot = metrics.tpot().count() > 0 ? metrics.tpot().quantile(slo.share) : Seconds()};
}

std::optional<Seconds> missed_ttft_alone(sim::SimulatedServer server, RequestWorkload workload,
                                         const ServiceLevel& slo) {
  server.deployment.prefill_replicas = server.deployment.decode_replicas = 1;
  workload.output = {.center = 1};  // the prefill replica samples it
  for (RecordedRequest& request : workload.recorded) request.output_tokens = 1;
  const ServiceLevel first{.ttft = slo.ttft, .share = slo.share};
  workload = one_by_one(std::move(workload), server.deployment.of(ReplicaRole::prefill).ranks());
  const ReplicaService service = serve_pools(server, workload, first).service;
  return may_meet(service, first) ? std::nullopt : std::optional(service.ttft);
}

}  // namespace dculab::study
