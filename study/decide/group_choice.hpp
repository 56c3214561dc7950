// How many KV heads a machine should keep, where fewer are faster and what they lose in accuracy was measured.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/calibration/input_sensitivity.hpp"
#include "study/decide/measured_accuracy.hpp"
#include "study/decide/preference.hpp"
#include "study/evaluate/variant_cost.hpp"

namespace dculab::study {

// All choices on one machine, the most KV heads first.
struct GroupChoice {
  std::string machine;
  std::vector<VariantCost> costs;
  std::vector<Evaluated> evaluated;           // output tokens per second; 0: does not fit
  std::vector<std::optional<double>> losses;  // relative to no merging; nothing: not measured
  std::vector<bool> front;                    // nothing else beats it in one respect and equals it in the others
  std::optional<Verdict> verdict;             // of those that lose no more than is tolerated
  std::optional<std::size_t> refused;         // the fastest that loses too much, if faster than the choice

  // Speed-up over the other choice, minus 1.
  [[nodiscard]] double faster(std::size_t index, std::size_t than) const {
    return evaluated[index].figure / evaluated[than].figure - 1;
  }
};

// Bytes of a token's K and V.
[[nodiscard]] Bytes kv_bytes(const VariantCost& cost);

// Null where it was not measured.
[[nodiscard]] const GroupAccuracy* accuracy_of(const AccuracyCurve& curve, const VariantCost& cost);

// Throws InputError unless the scenario sweeps KV heads alone, and serves requests.
void require_swept_heads(const config::Scenario& scenario);

// Precondition: the scenario has `accuracy`.
[[nodiscard]] GroupChoice choose_group(const config::Scenario& scenario, const AccuracyCurve& curve,
                                       const sim::Machine& machine);

// Input sensitivities of the times of all choices that fit; nothing where none does.
[[nodiscard]] std::optional<std::vector<sim::InputSensitivity>> input_sensitivities_of(const GroupChoice& choices);

// All machines.
struct GroupStudy {
  AccuracyCurve curve;
  std::vector<GroupChoice> machines;
};

// Throws InputError as require_swept_heads() and measured_accuracy(). Precondition as above.
[[nodiscard]] GroupStudy study_groups(const config::Scenario& scenario, const std::vector<sim::Machine>& machines);

}  // namespace dculab::study
