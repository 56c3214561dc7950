#include "study/measure/measured_comparison.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "config/weight_format_text.hpp"
#include "core/error.hpp"
#include "model/plan_step.hpp"
#include "sim/calibration/floor_check.hpp"
#include "sim/calibration/hold_out.hpp"
#include "sim/cost/step_price.hpp"
#include "study/calibrate/calibrated_machine.hpp"
#include "study/calibrate/refused_steps.hpp"
#include "study/measure/engine_weights.hpp"
#include "study/measure/measured_sweep.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/study_points.hpp"

namespace dculab::study {
namespace {

constexpr std::size_t kFewestBaselineSteps = 4;
constexpr int kRounds = 5;  // through all weights, so that a slow minute hits every variant alike

// The baseline or a variant at one point of the sweep.
struct Candidate {
  std::size_t point = 0;    // of the sweep
  std::size_t variant = 0;  // 0: the baseline
  config::Scenario scenario;
  engine::BenchPoint bench;
  std::vector<TraceStep> rounds;
};

void refuse_elsewhere(const config::Scenario& scenario) {
  for (const config::Variant& variant : scenario.compare->variants)
    for (const auto& [key, value] : variant.changes)
      if (key.starts_with("machine") || key.starts_with("stack"))
        throw InputError(scenario.file, "compare.variants: " + variant.name + ": " + key +
                                            " cannot be measured here, where this engine runs; leave --measure out");
}

[[nodiscard]] Candidate make_candidate(std::size_t point, std::size_t variant, const std::string& name,
                                       config::Scenario scenario) {
  Candidate candidate{point, variant, std::move(scenario), {}, {}};
  engine::BenchPoint& bench = candidate.bench;
  bench.id = name + ", point " + std::to_string(point + 1);
  bench.model = resolve_model(candidate.scenario);
  bench.options = resolve_options(candidate.scenario, bench.model, lower::DeviceKind::cpu);
  bench.batch = resolve_batch(candidate.scenario.workload, bench.model, bench.options);
  return candidate;
}

[[nodiscard]] std::vector<Candidate> candidates_of(const config::Compare& compare,
                                                   const std::vector<config::SweepPoint>& points) {
  std::vector<Candidate> candidates;
  for (std::size_t point = 0; point < points.size(); ++point) {
    candidates.push_back(make_candidate(point, 0, compare.baseline, points[point].scenario));
    for (std::size_t index = 0; index < compare.variants.size(); ++index) {
      const config::Variant& variant = compare.variants[index];
      candidates.push_back(
          make_candidate(point, index + 1, variant.name, config::with_changes(points[point].scenario, variant)));
    }
  }
  return candidates;
}

// Candidates with the same weights, which are loaded or made once a round: those of a model in one format.
[[nodiscard]] std::vector<std::vector<Candidate*>> by_weights(std::vector<Candidate>& candidates) {
  std::map<std::pair<std::string, std::string>, std::vector<Candidate*>> groups;
  for (Candidate& candidate : candidates)
    groups[{candidate.scenario.model.name, config::weight_format_text(candidate.bench.options.weights)}].push_back(
        &candidate);
  std::vector<std::vector<Candidate*>> result;
  for (auto& [weights, group] : groups) result.push_back(std::move(group));
  return result;
}

[[nodiscard]] TraceHeader run_round(const std::vector<Candidate*>& group, const config::Scenario& scenario,
                                    const engine::BenchProgress& progress) {
  const Candidate& any = *group.front();
  const engine::ModelWeights weights =
      load_or_make_weights(find_model(any.scenario.model.name), any.bench.options.weights);
  std::vector<engine::BenchPoint> bench;
  for (Candidate* candidate : group) {
    candidate->bench.model.dtype = weights.shape.dtype;  // of embedding and head, which are priced as they are run
    candidate->bench.model.quantized_lm_head = weights.shape.quantized_lm_head;
    candidate->bench.model.plain = weights.shape.plain;
    bench.push_back(candidate->bench);
  }
  engine::BenchOptions options = bench_options(scenario.measure);
  options.repeats = std::max(1, options.repeats / kRounds);
  Trace trace = engine::measure_steps(weights, bench, options, progress);
  for (std::size_t index = 0; index < group.size(); ++index)
    group[index]->rounds.push_back(std::move(trace.steps[index]));
  return trace.header;
}

// The fastest round: what else runs on the machine only ever slows.
[[nodiscard]] const TraceStep& measured(const Candidate& candidate) {
  return *std::min_element(candidate.rounds.begin(), candidate.rounds.end(),
                           [](const TraceStep& a, const TraceStep& b) { return a.duration < b.duration; });
}

[[nodiscard]] sim::Fit fit_baseline(const sim::Machine& host, const std::vector<Candidate>& candidates) {
  std::vector<TraceStep> steps;
  for (const Candidate& candidate : candidates)
    if (candidate.variant == 0) steps.push_back(measured(candidate));
  std::vector<TraceStep> believed;
  for (const std::size_t row : believed_rows(sim::floor_violations(host, steps), steps.size()))
    believed.push_back(steps[row]);
  if (believed.size() < kFewestBaselineSteps)
    throw InputError("only " + std::to_string(believed.size()) + " of the baseline's steps can be believed, " +
                     std::to_string(kFewestBaselineSteps) + " are needed to calibrate; widen the sweep");
  return sim::calibrate(host, believed);
}

[[nodiscard]] Seconds predicted(const Candidate& candidate, const sim::Machine& machine) {
  return sim::price_step(machine, plan_step(candidate.bench.model, candidate.bench.options, candidate.bench.batch))
      .seconds;
}

[[nodiscard]] MeasuredSpeedUp speed_up_of(const Candidate& baseline, const Candidate& variant,
                                          const sim::Machine& machine) {
  std::vector<double> of_rounds;
  for (std::size_t round = 0; round < variant.rounds.size(); ++round)
    of_rounds.push_back(baseline.rounds[round].duration / variant.rounds[round].duration);
  const auto [lowest, highest] = std::ranges::minmax_element(of_rounds);
  const Seconds step = measured(variant).duration;
  return {.point = variant.point,
          .variant = variant.variant - 1,
          .step = step,
          .predicted = predicted(baseline, machine) / predicted(variant, machine),
          .measured = measured(baseline).duration / step,
          .lowest = *lowest,
          .highest = *highest};
}

}  // namespace

MeasuredComparison measure_comparison(const config::Scenario& scenario, const std::vector<config::SweepPoint>& sweep,
                                      const sim::Machine& host, const engine::BenchProgress& progress) {
  if (scenario.workload.kind != config::WorkloadKind::step)
    throw InputError(scenario.file,
                     "workload: what is measured are single steps; give phase, batch and context_tokens");
  refuse_elsewhere(scenario);
  std::vector<Candidate> candidates = candidates_of(*scenario.compare, sweep);
  MeasuredComparison found;
  for (int round = 0; round < kRounds; ++round)
    for (const std::vector<Candidate*>& group : by_weights(candidates))
      found.trace.header = run_round(group, scenario, progress);
  found.trace.header.timing =
      "fastest of " + std::to_string(kRounds) + " rounds, each the " + found.trace.header.timing;
  found.machine = fit_baseline(host, candidates).machine;
  const std::size_t per_point = scenario.compare->variants.size() + 1;
  for (const Candidate& candidate : candidates) {
    found.trace.steps.push_back(measured(candidate));
    if (candidate.variant > 0)
      found.speed_ups.push_back(speed_up_of(candidates[candidate.point * per_point], candidate, found.machine));
  }
  cite_fit(found.machine, std::to_string(sweep.size()) + " measured steps");
  return found;
}

}  // namespace dculab::study
