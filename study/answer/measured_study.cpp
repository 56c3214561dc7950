#include "study/answer/measured_study.hpp"

#include "study/answer/study_question.hpp"
#include "study/decide/draft_study.hpp"

namespace dculab::study {
namespace {

[[nodiscard]] const Trace& trace_of(const MeasuredSweep& found) { return found.trace; }
[[nodiscard]] const Trace& trace_of(const MeasuredComparison& found) { return found.trace; }
[[nodiscard]] const Trace& trace_of(const MeasuredDrafts& found) { return found.plain; }
[[nodiscard]] const Trace& trace_of(const ServedStudy& found) { return found.trace; }

[[nodiscard]] const sim::Machine& calibrated(const MeasuredSweep& found) { return found.score.fit.machine; }
[[nodiscard]] const sim::Machine& calibrated(const MeasuredComparison& found) { return found.machine; }
[[nodiscard]] const sim::Machine& calibrated(const MeasuredDrafts& found) { return found.machine; }
[[nodiscard]] const sim::Machine& calibrated(const ServedStudy& found) { return found.machine; }

}  // namespace

const Trace& MeasuredStudy::trace() const {
  return std::visit([](const auto& each) -> const Trace& { return trace_of(each); }, found);
}

const sim::Machine& MeasuredStudy::machine() const {
  return std::visit([](const auto& each) -> const sim::Machine& { return calibrated(each); }, found);
}

MeasuredStudy measure_study(const config::Scenario& scenario, const sim::Machine& host,
                            const engine::BenchProgress& progress) {
  MeasuredStudy study{.host = host.description};
  if (is_served(scenario)) {
    study.sweep = config::sweep_points(scenario);
    study.found = measure_served_study(scenario, study.sweep, host, progress);
  } else if (scenario.compare) {
    study.sweep = config::sweep_points(scenario);
    study.found = measure_comparison(scenario, study.sweep, host, progress);
  } else if (is_draft_study(scenario)) {
    study.found = measure_drafts(scenario, host, progress);
  } else {
    study.found = measure_sweep(scenario, host, progress);
  }
  return study;
}

}  // namespace dculab::study
