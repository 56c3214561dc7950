// The devices that `dculab recommend` is offered, as questions about fleets.
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

// The case's load with as many sequences at a time as keep waits short, where TPOT alone would allow fewer: those of
// the fleet, or, without one, what the replicas of the given deployment take.
[[nodiscard]] sim::SteadyLoad with_short_waits(const RecommendationQuestion& question, const sim::ServingCase& serving,
                                               const RequestWorkload& workload,
                                               const std::optional<FleetChoice>& fleet);

}  // namespace dculab::study
