// The devices that `dculab recommend` is offered, and the load, as questions about replicas.
#pragma once

#include <optional>
#include <string>

#include "study/decide/fleet.hpp"
#include "study/decide/serving_recommendation.hpp"
#include "study/decide/stack_limits.hpp"

namespace dculab::study {

// Servers may have fewer devices than the machine's file says; a link joins no more than it does.
[[nodiscard]] sim::Machine with_offer(sim::Machine machine, const std::optional<FleetOffer>& offer);

// Of a server of that machine. Precondition: question.offer.
[[nodiscard]] FleetOffer offer_on(const sim::Machine& machine, const RecommendationQuestion& question);

// What the kernels of the machine's own stack allow. Throws InputError where they do not run the model.
[[nodiscard]] StackLimits own_limits(const RecommendationQuestion& question, const sim::Machine& machine,
                                     const ModelShape& model);

// To choose from: the one that is asked for, or those that the machine is known to run.
[[nodiscard]] std::vector<Dtype> offered_kv_dtypes(const RecommendationQuestion& question, const StackLimits& own,
                                                   const sim::Machine& machine);

// Which fleet of that machine serves the load. Throws InputError. Precondition: question.offer.
[[nodiscard]] FleetQuestion fleet_question(const RecommendationQuestion& question, const sim::Machine& machine,
                                           const ModelShape& model, const RequestWorkload& workload);

// The fleet. Throws InputError as choose_fleet does, and says where pools for prefill and decode may serve the load.
[[nodiscard]] FleetChoice offered_fleet(const RecommendationQuestion& question, const sim::Machine& machine,
                                        const ModelShape& model, const RequestWorkload& workload);

// The requests of one of so many replicas.
[[nodiscard]] RequestWorkload part_of_replica(const RecommendationQuestion& question, const RequestWorkload& workload,
                                              const Recommendation& result, int replicas, Sample sample);

// Sets max_num_seqs: more sequences at a time than meet TPOT while all of them run, where requests would wait too long
// for the service level; those of the fleet, or, without one, what the given replicas take. Throws InputError for a
// request that cannot be served. Precondition: result.served.
void choose_sequences(const RecommendationQuestion& question, const RequestWorkload& workload, Recommendation& result);

// Where requests arrive at a rate: sets what `server`, a replica, serves at the slow end of the intervals, and how many
// replicas of a fleet leave no doubt. Precondition: result.expected.
void look_for_doubt(const RecommendationQuestion& question, const sim::SimulatedServer& server,
                    const RequestWorkload& workload, Recommendation& result);

}  // namespace dculab::study
