// Measured steps as choices of KV heads and block size, beside what a machine is predicted to take for them.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "model/trace.hpp"
#include "sim/hardware/machine.hpp"
#include "sim/study/recommend.hpp"

namespace dculab::sim {

struct MeasuredChoices {
  std::vector<ChoiceTime> predicted, measured;  // one each a step, in their order
};

// Steps that differ in KV heads and block size only are one workload: of the same layers, in the same formats, with the
// same lengths of every sequence. Names do not count: a model with other KV heads may have another.
[[nodiscard]] MeasuredChoices measured_choices(const Machine& machine, std::span<const TraceStep> steps);

// Of several; nothing where fewer than two of them were measured on all workloads.
[[nodiscard]] std::optional<Regret> decision_regret(const MeasuredChoices& choices);

}  // namespace dculab::sim
