#include "study/decide/replica_service.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.hpp"
#include "sim/calibration/confidence.hpp"
#include "study/decide/serving_case.hpp"

namespace dculab::study {
namespace {

constexpr int kAloneRequests = 64;

}  // namespace

ReplicaService service_of(const ServingMetrics& metrics, const RequestWorkload& workload, const ServiceLevel& slo) {
  return {.requests_per_second = workload.arrival == ArrivalKind::gamma ? workload.requests_per_second : 0,
          .requests = metrics.latency().count(),
          .slo_attainment = metrics.share_within_objective(),
          .ttft_p90 = metrics.ttft().quantile(0.9),
          .tpot_p90 = metrics.tpot().count() > 0 ? metrics.tpot().quantile(0.9) : Seconds(),
          .latency_mean = metrics.latency().mean(),
          .ttft = metrics.ttft().quantile(slo.share)};
}

bool has_limits(const ServiceLevel& slo) { return slo.ttft || slo.tpot || slo.latency || slo.slowdown; }

sim::SimulatedServer replica_server(const sim::ServingCase& serving, const sim::Setting& setting, int batch) {
  return {.machine = serving.machine,
          .model = serving.model,
          .options = options_with(serving, setting, batch),
          .deployment = {.tensor_parallel_size = serving.devices.tensor_parallel_size,
                         .pipeline_parallel_size = serving.devices.pipeline_parallel_size,
                         .experts = serving.devices.experts}};
}

FullService serve_full(const sim::SimulatedServer& server, RequestWorkload workload, const sim::SteadyLoad& load) {
  workload.arrival = ArrivalKind::all_at_once;
  workload.recorded.clear();
  workload.prompt = {.center = static_cast<double>(load.prompt_tokens)};
  workload.output = {.center = static_cast<double>(load.output_tokens)};
  const sim::ReplicaDevices devices = server.deployment.of(ReplicaRole::both);
  const int batch = server.options.max_num_seqs * devices.ranks() * devices.pipeline_parallel_size;
  workload.requests = 2 * batch;
  const Seconds shorter = sim::simulate(server, workload, {}).metrics.duration();
  workload.requests = 3 * batch;
  const ServingMetrics longer = sim::simulate(server, workload, {}).metrics;
  const bool steady = longer.duration() > shorter;
  return {.requests_per_second =
              steady ? batch / (longer.duration() - shorter).value() : 3 * batch / longer.duration().value(),
          .tpot = longer.tpot().count() > 0 ? longer.tpot().quantile(0.5) : Seconds()};
}

ReplicaService serve_requests(const sim::ServingCase& serving, const sim::Setting& setting, int batch,
                              const RequestWorkload& workload, const ServiceLevel& slo) {
  const sim::SimulatedServer server = replica_server(serving, setting, batch);
  if (const auto found = sim::problems(server); !found.empty()) throw InputError(serving.model.name, found.front());
  ReplicaService service = service_of(sim::simulate(server, workload, slo).metrics, workload, slo);
  service.max_num_seqs = batch;
  return service;
}

RequestWorkload one_by_one(RequestWorkload workload, int ranks) {
  const bool are_alike = workload.recorded.empty() && workload.prompt.kind == LengthKind::fixed &&
                         workload.output.kind == LengthKind::fixed && workload.prefix_tokens == 0 &&
                         workload.duplicate_prompts == 0;
  workload.requests = std::min(workload.requests, (are_alike ? 1 : kAloneRequests) * ranks);
  workload.arrival = ArrivalKind::all_at_once;
  workload.max_concurrency = ranks;  // of groups that share experts one is simulated
  return workload;
}

ReplicaService serve_alone(const sim::ServingCase& serving, const sim::Setting& setting, int batch,
                           RequestWorkload workload, const ServiceLevel& slo) {
  return serve_requests(serving, setting, batch, one_by_one(std::move(workload), serving.devices.ranks()), slo);
}

bool may_meet(const ReplicaService& service, const ServiceLevel& slo) {
  const double error = std::sqrt(slo.share * (1 - slo.share) / static_cast<double>(service.requests));
  return service.slo_attainment >= slo.share - sim::kNormalQuantile95 * error;
}

}  // namespace dculab::study
