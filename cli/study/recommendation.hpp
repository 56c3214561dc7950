// Which KV heads and block size of a sweep to choose on a machine, and the table that shows why.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/study/predicted_study.hpp"
#include "config/scenario_file.hpp"
#include "sim/cost/step_price.hpp"
#include "sim/study/sensitivity.hpp"
#include "study/decide/measured_accuracy.hpp"
#include "study/decide/step_choices.hpp"

namespace dculab::cli {

struct PricedPoint {
  const StudyPoint* point = nullptr;
  sim::StepPrice price;
  StepPlan plan;
};

// Whose KV heads are asked about, and what is known of their accuracy.
struct HeadsQuestion {
  std::string model;
  int own = 0;  // before the sweep
  int query_heads = 0;
  std::optional<study::AccuracyCurve> accuracy;  // that the scenario names
  double tolerance = 0, speed_tie = 0;           // with it
};

[[nodiscard]] HeadsQuestion heads_question(const config::Scenario& scenario);

// KV heads and block size that the points choose; nothing where none fits, or accuracy allows none.
[[nodiscard]] std::optional<study::StepDecision> step_decision(const std::vector<PricedPoint>& points,
                                                               const HeadsQuestion& question,
                                                               const sim::Machine& machine);

// Adds the recommended block size, the KV heads where accuracy decides them, and how the alternatives compare, to the
// report and to `json`; a line that there is nothing to choose when neither of the two varies.
void add_recommendation(const std::vector<PricedPoint>& points, const HeadsQuestion& question,
                        const sim::Machine& machine, Report& report, Json& json);

// The same choice as a question to ask on `base` with other figures. All three must outlive it.
[[nodiscard]] sim::Question recommendation_of(const std::vector<PricedPoint>& points, const HeadsQuestion& question,
                                              const sim::Machine& base);

}  // namespace dculab::cli
