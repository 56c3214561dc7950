#include "study/decide/offered_fleet.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "study/decide/doubt.hpp"
#include "study/decide/serving_case.hpp"
#include "study/scenario/resolve.hpp"

namespace dculab::study {

sim::Machine with_offer(sim::Machine machine, const std::optional<FleetOffer>& offer) {
  if (offer && machine.kind != lower::DeviceKind::cpu && machine.peers)
    machine.peers = std::min(*machine.peers, offer->devices - 1);
  return machine;
}

FleetOffer offer_on(const sim::Machine& machine, const RecommendationQuestion& question) {
  FleetOffer offer = *question.offer;
  offer.one_replica_a_server = machine.kind == lower::DeviceKind::cpu;
  return offer;
}

StackLimits own_limits(const RecommendationQuestion& question, const sim::Machine& machine, const ModelShape& model) {
  const config::Scenario& scenario = question.scenario;
  StackLimits own = stack_limits(model, resolve_options(scenario, model, machine), machine).front();
  if (!own.why_not.empty()) throw InputError(scenario.file, own.why_not);
  return own;
}

std::vector<Dtype> offered_kv_dtypes(const RecommendationQuestion& question, const StackLimits& own,
                                     const sim::Machine& machine) {
  return question.kv_cache_dtype ? std::vector{*question.kv_cache_dtype} : known_kv_dtypes(own, machine);
}

FleetQuestion fleet_question(const RecommendationQuestion& question, const sim::Machine& machine,
                             const ModelShape& model, const RequestWorkload& workload) {
  return {.scenario = question.scenario,
          .offer = offer_on(machine, question),
          .kv_dtypes = offered_kv_dtypes(question, own_limits(question, machine, model), machine),
          .block_size = question.block_size,
          .sequences = question.sequences,
          .rate = rate_of(workload),
          .count_requests = question.count_requests};
}

FleetChoice offered_fleet(const RecommendationQuestion& question, const sim::Machine& machine, const ModelShape& model,
                          const RequestWorkload& workload) {
  const FleetQuestion asked = fleet_question(question, machine, model, workload);
  try {
    return choose_fleet(asked, machine, model, workload);
  } catch (const InputError& error) {
    if (!asked.rate || !question.scenario.slo.tpot || machine.stack.is_own()) throw;
    throw InputError(std::string(error.what()) +
                     ", or give prefill and decode devices of their own: --decode-machine " + machine.name);
  }
}

RequestWorkload part_of_replica(const RecommendationQuestion& question, const RequestWorkload& workload,
                                const Recommendation& result, int replicas, Sample sample) {
  const sim::ServingCase& serving = result.serving;
  RequestWorkload part = share_of(workload, replicas);
  if (!question.count_requests) return part;
  const int ranks = serving.devices.ranks();
  const Seconds latency = result.served.tpot * serving.load.output_tokens;
  double at_a_time = static_cast<double>(result.max_num_seqs) * serving.devices.pipeline_parallel_size;
  if (part.arrival == ArrivalKind::gamma)
    at_a_time = std::min(at_a_time, part.requests_per_second * latency.value() / ranks);
  part.requests = sampled_requests(at_a_time, sample) * ranks;
  return part;
}

void choose_sequences(const RecommendationQuestion& question, const RequestWorkload& workload, Recommendation& result) {
  result.max_num_seqs = result.served.batch;
  const std::optional<double> rate = rate_of(workload);
  if (!rate || question.sequences) return;
  if (result.fleet) {
    const sim::Served& served = result.fleet->choice().served;
    if (served.limit == sim::SequenceLimit::waits)
      result.max_num_seqs = std::max(result.max_num_seqs, std::min(served.batch, result.served.room));
    return;
  }
  Tried tried;
  tried.layout.devices = result.serving.devices;
  tried.layout.setting = result.setting;
  tried.layout.served = result.served;
  tried.serving = result.serving;
  result.max_num_seqs = sequences_for(
      tried, {workload, result.serving.load, question.scenario.slo, rate, question.count_requests}, result.replicas);
}

void look_for_doubt(const RecommendationQuestion& question, const sim::SimulatedServer& server,
                    const RequestWorkload& workload, Recommendation& result) {
  const ServiceLevel& slo = question.scenario.slo;
  ExpectedService& expected = *result.expected;
  if (!rate_of(workload) || workload.arrival != ArrivalKind::gamma) return;
  const auto part_of = [&](int replicas, Sample sample) {
    return part_of_replica(question, workload, result, replicas, sample);
  };
  const DoubtQuestion asked{server, result.serving.load, slo, part_of, expected.slowest};
  expected.arriving = result.offered_requests_per_second;
  expected.slowest_rate = slowest_rate(asked);
  if (!result.fleet || doubt_of(expected, slo) == Doubt::none) return;
  const int offered = result.fleet->offer.most_replicas(result.serving.devices).value_or(kMostReplicas);
  const int most = std::max(result.replicas, std::min(offered, kDoubtTimes * result.replicas));
  result.replicas_without_doubt = replicas_without_doubt(asked, *expected.slowest_rate, result.replicas, most);
  if (!result.replicas_without_doubt) result.replicas_in_doubt = most;
}

}  // namespace dculab::study
