// Whether a load takes fewer devices where some replicas prefill and others, perhaps of another kind of machine,
// decode: `dculab recommend --decode-machine`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "study/decide/disaggregated_fleet.hpp"
#include "study/decide/fleet.hpp"
#include "study/decide/serving_recommendation.hpp"

namespace dculab::study {

// The same load on one kind of machine, by replicas that do both.
struct FleetAlone {
  std::string machine;
  std::optional<FleetChoice> fleet{};
  std::string why_not{};  // none serves it
};

struct DisaggregatedRecommendation {
  std::string model;
  std::string checkpoint;  // what a program loads: "Qwen/Qwen3-8B", or a folder
  DisaggregatedFleet fleet{};
  std::vector<FleetAlone> alone{};  // of the prefill machine, then of the decode machine where it is another
  double slo_share = 0.9;           // of the requests that should meet the slo

  // Of `alone`: needs fewer of its devices than the pools have of them, or as many and answers no later, so that
  // disaggregation gains nothing. Of two the one with fewer devices. Null: none.
  [[nodiscard]] const FleetAlone* no_worse() const;

  [[nodiscard]] const sim::Machine& prefill_machine() const { return fleet.server.machine; }
  [[nodiscard]] const sim::Machine& decode_machine() const { return fleet.server.machine_of(ReplicaRole::decode); }
};

// With prefill on `machine` and decode on question.decode_machine. Throws InputError where the question lacks devices
// or a rate, and where no layouts serve the load: with what each lacks, and what serves it without disaggregation.
[[nodiscard]] DisaggregatedRecommendation recommend_disaggregated(const RecommendationQuestion& question,
                                                                  const std::string& machine);

}  // namespace dculab::study
