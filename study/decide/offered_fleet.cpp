#include "study/decide/offered_fleet.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "study/decide/serving_case.hpp"
#include "study/decide/tried_layout.hpp"
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

sim::SteadyLoad with_short_waits(const RecommendationQuestion& question, const sim::ServingCase& serving,
                                 const RequestWorkload& workload, const std::optional<FleetChoice>& fleet) {
  sim::SteadyLoad load = serving.load;
  if (fleet) {
    const sim::Served& served = fleet->choice().served;
    if (served.limit == sim::SequenceLimit::waits) load.sequences = served.batch, load.why_sequences = served.limit;
    return load;
  }
  const std::optional<double> rate = rate_of(workload);
  if (!rate) return load;
  std::string why_not;
  auto tried = tried_layout({question.scenario, serving.machine, serving.model, load, question.block_size},
                            serving.devices, question.kv_cache_dtype.value_or(serving.options.kv_cache_dtype), why_not);
  if (!tried) return load;
  tried->layout.served = sim::serve(tried->serving, tried->layout.setting);
  if (tried->layout.served.batch == 0) return load;
  const FleetOffer none;
  choose_sequences(*tried, {workload, load, question.scenario.slo, none, rate, question.count_requests},
                   question.scenario.deployment.data_parallel_size);
  return tried->serving.load;
}

}  // namespace dculab::study
