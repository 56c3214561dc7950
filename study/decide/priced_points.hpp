// Which KV heads and block size the priced points of a sweep choose on a machine.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/cost/step_price.hpp"
#include "sim/study/sensitivity.hpp"
#include "study/decide/measured_accuracy.hpp"
#include "study/decide/step_choices.hpp"
#include "study/scenario/study_points.hpp"

namespace dculab::study {

struct PricedPoint {
  const StudyPoint* point = nullptr;
  sim::StepPrice price;
  StepPlan plan;
};

[[nodiscard]] std::vector<PricedPoint> price_points(const std::vector<StudyPoint>& points, const sim::Machine& machine);

// Whose KV heads are asked about, and what is known of their accuracy.
struct HeadsQuestion {
  std::string model;
  int own = 0;  // before the sweep
  int query_heads = 0;
  std::optional<AccuracyCurve> accuracy;  // that the scenario names
  double tolerance = 0, speed_tie = 0;    // with it
};

[[nodiscard]] HeadsQuestion heads_question(const config::Scenario& scenario);

// KV heads and block sizes of the points with their steps per second; `machine` is what these were made for.
[[nodiscard]] EvaluatedChoices evaluated(const std::vector<PricedPoint>& points, const sim::Machine& machine);

// The choice among them; nothing where none fits, or accuracy allows none.
[[nodiscard]] std::optional<StepDecision> step_decision(const EvaluatedChoices& choices, const HeadsQuestion& question,
                                                        const sim::Machine& machine);

// The same as a question to ask on `base` with other figures. All three must outlive it.
[[nodiscard]] sim::Question recommendation_of(const std::vector<PricedPoint>& points, const HeadsQuestion& question,
                                              const sim::Machine& base);

}  // namespace dculab::study
