#include "study/decide/priced_points.hpp"

#include "model/plan_step.hpp"
#include "sim/calibration/confidence.hpp"
#include "sim/memory/capacity.hpp"
#include "study/decide/attention_difference.hpp"
#include "study/scenario/resolve.hpp"

namespace dculab::study {
namespace {

// Steps of all points as choices, on `machine` where `base` is what they were made for.
[[nodiscard]] std::vector<PricedChoice> priced_choices(const std::vector<PricedPoint>& points,
                                                       const sim::Machine& base) {
  std::vector<PricedChoice> prices;
  for (const PricedPoint& priced : points) {
    const StudyPoint& point = *priced.point;
    const auto price = [&](const sim::Machine& machine) {
      return sim::price_step(machine_of(point, machine, base), priced.plan).seconds;
    };
    const int context = point.batch.sequences.front().context_tokens();
    const std::int64_t room = sim::capacity(base, point.model, point.options, context).max_sequences;
    prices.push_back({.choice = point.choice,
                      .workload = point.workload,
                      .seconds = priced.price.seconds,
                      .shifts = sim::prior_shifts(base, price),
                      .fits = room >= static_cast<std::int64_t>(point.batch.sequences.size())});
  }
  return prices;
}

}  // namespace

std::vector<PricedPoint> price_points(const std::vector<StudyPoint>& points, const sim::Machine& machine) {
  std::vector<PricedPoint> priced;
  for (const StudyPoint& point : points) {
    StepPlan plan = plan_step(point.model, point.options, point.batch);
    sim::StepPrice price = sim::price_step(machine_of(point, machine, machine), plan);
    priced.push_back({&point, std::move(price), std::move(plan)});
  }
  return priced;
}

HeadsQuestion heads_question(const config::Scenario& scenario) {
  const ModelShape model = resolve_model(scenario);
  HeadsQuestion question{.model = model.name,
                         .own = model.heads().num_key_value_heads,
                         .query_heads = model.heads().num_attention_heads,
                         .accuracy = {},
                         .tolerance = 0,
                         .speed_tie = 0};
  if (!scenario.accuracy) return question;
  question.accuracy = measured_accuracy(scenario);
  question.tolerance = scenario.accuracy->tolerance;
  question.speed_tie = scenario.accuracy->speed_tie;
  return question;
}

EvaluatedChoices evaluated(const std::vector<PricedPoint>& points, const sim::Machine& machine) {
  return over_workloads(priced_choices(points, machine));
}

std::optional<StepDecision> step_decision(const EvaluatedChoices& choices, const HeadsQuestion& question,
                                          const sim::Machine& machine) {
  std::optional<AllowedHeads> allowed;
  if (question.accuracy)
    allowed = AllowedHeads{
        .kv_heads = tolerated_kv_heads(*question.accuracy, question.query_heads, question.own, question.tolerance),
        .given_up = question.speed_tie};
  return decide_steps(choices, question.own, machine.stack.defaults.block_size, allowed);
}

sim::Question recommendation_of(const std::vector<PricedPoint>& points, const HeadsQuestion& question,
                                const sim::Machine& base) {
  return [&points, &question, &base, prices = priced_choices(points, base)](const sim::Machine& machine) mutable {
    sim::StepPrice price;
    for (std::size_t index = 0; index < points.size(); ++index) {
      sim::price_step(machine_of(*points[index].point, machine, base), points[index].plan, price);
      prices[index].seconds = price.seconds;
    }
    const EvaluatedChoices choices = over_workloads(prices);
    const auto decision = step_decision(choices, question, base);
    if (!decision) return sim::Answer{"nothing fits", 0};
    const sim::Choice best = decision->choice;
    return sim::Answer{heads_text(best.kv_heads) + ", block " + std::to_string(best.block_size),
                       1 / choices.at(best).figure};
  };
}

}  // namespace dculab::study
