#include "study/decide/step_study.hpp"

#include <algorithm>
#include <utility>

#include "sim/cost/step_price.hpp"
#include "sim/memory/capacity.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/served.hpp"
#include "study/scenario/taken_blocks.hpp"

namespace dculab::study {
namespace {

// Of points that differ in what decides it.
[[nodiscard]] std::vector<std::string> unserved_points(const std::vector<StudyPoint>& points,
                                                       const sim::Machine& machine) {
  std::vector<const StudyPoint*> asked;
  std::vector<std::string> found;
  for (const StudyPoint& point : points) {
    const auto is_alike = [&point](const StudyPoint* other) {
      return other->model == point.model && other->stack.has_value() == point.stack.has_value() &&
             other->options.weights == point.options.weights &&
             other->options.kv_cache_dtype == point.options.kv_cache_dtype &&
             other->options.kv_retention.policy == point.options.kv_retention.policy;
    };
    if (std::ranges::any_of(asked, is_alike)) continue;
    asked.push_back(&point);
    const sim::Machine own = study::machine_of(point, machine, machine);
    if (!own.stack.is_own()) continue;
    for (std::string& what : unserved(own, point.model, point.options)) found.push_back(std::move(what));
  }
  return found;
}

[[nodiscard]] StepFigures figures_of(const PricedPoint& priced, const sim::Machine& on) {
  const StudyPoint& point = *priced.point;
  const sim::Machine machine = study::machine_of(point, on, on);
  const Seconds seconds = priced.price.seconds;
  const int context = point.batch.sequences.front().context_tokens();
  return {.choices = point.choices,
          .batch = static_cast<int>(point.batch.sequences.size()),
          .seconds = seconds,
          .trust = {},
          .tokens_per_second = static_cast<double>(point.batch.num_tokens()) / seconds.value(),
          .bound = step_bound(priced.price, machine),
          .max_sequences = sim::capacity(machine, point.model, point.options, context).max_sequences};
}

[[nodiscard]] std::map<sim::Choice, AttentionCauses> causes_by_choice(const std::vector<PricedPoint>& points) {
  std::map<sim::Choice, int> counts;
  for (const PricedPoint& priced : points) ++counts[priced.point->choice];
  std::map<sim::Choice, AttentionCauses> result;
  for (const PricedPoint& priced : points)
    add_to(result[priced.point->choice], priced.plan, priced.price, 1.0 / counts[priced.point->choice]);
  return result;
}

void decide_choice(const std::vector<PricedPoint>& priced, StepStudy& study) {
  study.choices = evaluated(priced, study.machine);
  if (study.choices.size() < 2) return;
  study.decision = step_decision(study.choices, study.question, study.machine);
  if (study.decision) study.causes = causes_by_choice(priced);
}

[[nodiscard]] SweptModels swept_models(const config::Scenario& scenario, const std::vector<config::SweepPoint>& sweep,
                                       const std::vector<PricedPoint>& priced, const sim::Machine& machine) {
  SweptModels models{.batches = swept_batches(priced), .comparisons = {}};
  models.comparisons = compare_models(scenario, sweep, priced, models.batches, machine);
  for (ModelComparison& comparison : models.comparisons)
    for (SweptModel& model : comparison.models) {  // what these refer to ends before the answer does
      model.compared.step_time = nullptr;
      model.evaluated_step = nullptr;
    }
  return models;
}

[[nodiscard]] std::vector<sim::InputSensitivity> step_sensitivities(const std::vector<PricedPoint>& points,
                                                                    const sim::Machine& machine) {
  return sim::input_sensitivities(machine, [&](const sim::Machine& candidate) {
    std::vector<Seconds> times;
    for (const PricedPoint& priced : points)
      times.push_back(sim::price_step(study::machine_of(*priced.point, candidate, machine), priced.plan).seconds);
    return times;
  });
}

// The points of a sweep with their prices, which refer to them.
struct Sweep {
  TakenPoints taken;
  std::vector<StudyPoint> points;
  std::vector<PricedPoint> priced;
};

[[nodiscard]] Sweep priced_sweep(const config::Scenario& scenario, const sim::Machine& machine) {
  Sweep sweep{.taken = taken_points(scenario, machine), .points = {}, .priced = {}};
  sweep.points = study_points(scenario, machine, sweep.taken.points);
  sweep.priced = price_points(sweep.points, machine);
  return sweep;
}

void add_figures(const Sweep& sweep, StepStudy& study) {
  study.left_out = sweep.taken.left_out;
  study.model = sweep.points.front().model.name;
  study.unserved = unserved_points(sweep.points, study.machine);
  for (const PricedPoint& each : sweep.priced) study.points.push_back(figures_of(each, study.machine));
}

void add_intervals(const Sweep& sweep, StepStudy& study) {
  for (std::size_t index = 0; index < sweep.priced.size(); ++index) {
    const PricedPoint& priced = sweep.priced[index];
    const sim::Machine machine = study::machine_of(*priced.point, study.machine, study.machine);
    study.points[index].trust =
        sim::confidence(machine, priced.point->model, priced.point->options, priced.plan, priced.price.seconds);
  }
}

void add_details(std::vector<PricedPoint> priced, StepStudy& study) {
  if (priced.size() > kDetailedPoints) return;
  for (PricedPoint& each : priced) study.details.push_back({std::move(each.plan), std::move(each.price)});
}

}  // namespace

bool StepStudy::leaves_heads_open() const {
  return decision && !question.accuracy && std::count(decision->front.begin(), decision->front.end(), true) > 1;
}

std::optional<std::int64_t> StepStudy::most_where_none_fits() const {
  std::int64_t most = 0;
  for (const StepFigures& point : points) {
    if (point.max_sequences >= point.batch) return std::nullopt;
    most = std::max(most, point.max_sequences);
  }
  return most;
}

StepStudy price_steps(const config::Scenario& scenario, const sim::Machine& machine) {
  StepStudy study{.machine = machine};
  const Sweep sweep = priced_sweep(scenario, machine);
  add_figures(sweep, study);
  add_details(sweep.priced, study);
  return study;
}

StepStudy study_steps(const config::Scenario& scenario, const sim::Machine& machine, double within) {
  StepStudy study{.machine = machine};
  Sweep sweep = priced_sweep(scenario, machine);
  std::vector<PricedPoint>& priced = sweep.priced;
  add_figures(sweep, study);
  add_intervals(sweep, study);
  study.question = heads_question(scenario);
  if (sweeps_models(scenario)) {
    study.models = swept_models(scenario, sweep.taken.points, priced, machine);
  } else {
    decide_choice(priced, study);
  }
  study.input_sensitivities = step_sensitivities(priced, machine);
  if (within > 1 && study.decision) {
    const sim::Question asked = recommendation_of(priced, study.question, machine);
    study.sensitivity = StepSensitivity{asked(machine).choice, sim::sensitivities(machine, asked, within), within};
  }
  add_details(std::move(priced), study);
  return study;
}

}  // namespace dculab::study
