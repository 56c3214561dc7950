#include "study/decide/measured_regret.hpp"

#include "core/error.hpp"
#include "sim/calibration/floor_check.hpp"
#include "sim/study/measured_choices.hpp"
#include "study/calibrate/refused_steps.hpp"

namespace dculab::study {
namespace {

// Figures of other layers than these, or of another machine, say nothing of what a choice costs here.
void require_own_trace(const Trace& trace, const ModelShape& model, const sim::Machine& machine) {
  if (trace.header.machine != machine.name)
    throw InputError("--trace", "was measured on '" + trace.header.machine + "', and " + machine.name +
                                    " is asked about; give its own machine file, or leave --trace out");
  for (const TraceStep& step : trace.steps)
    if (!same_but_for_kv_heads(step.model, model))
      throw InputError("--trace", "was measured with " + step.model.name + ", whose layers are not those of " +
                                      model.name + "; leave --trace out");
}

}  // namespace

MeasuredRegret measured_regret(const sim::ServingCase& serving, const Trace& trace) {
  const sim::Machine& machine = serving.machine;
  require_own_trace(trace, serving.model, machine);
  const std::vector<sim::FloorViolation> violations = sim::floor_violations(machine, trace.steps);
  std::vector<TraceStep> accepted;
  for (const std::size_t row : believed_rows(violations, trace.steps.size())) accepted.push_back(trace.steps[row]);
  return {sim::decision_regret(sim::measured_choices(machine, accepted)), refusal_lines(violations, trace)};
}

}  // namespace dculab::study
