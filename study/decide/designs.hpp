// Designs of a machine: for each, the KV heads and block size that suit it (`choose` of a scenario).
#pragma once

#include <string>
#include <vector>

#include "config/scenario_file.hpp"
#include "core/step_plan.hpp"
#include "model/model_shape.hpp"
#include "sim/calibration/confidence.hpp"
#include "sim/calibration/input_sensitivity.hpp"
#include "sim/hardware/machine.hpp"
#include "sim/study/recommend.hpp"

namespace dculab::study {

// The points of one design: they differ in what is to be chosen.
struct Design {
  std::vector<config::Override> choices;  // of the axes that are not chosen
  std::vector<const config::Scenario*> points;
};

// What a design comes to.
struct DecidedDesign {
  std::vector<config::Override> choices;  // the design's
  sim::Machine machine;
  ModelShape model;
  sim::Choice choice;
  StepPlan plan;
  sim::Confidence trust;
  Seconds seconds;
  std::string bound;
  std::vector<std::string> refused;  // refused_kv()
};

// Throws InputError where `choose` names what is not swept, or stands beside what it does not go with.
void refuse_undecided(const config::Scenario& scenario);

// The designs of the sweep, which point into `points`. Precondition: not refused.
[[nodiscard]] std::vector<Design> designs_of(const config::Scenario& scenario,
                                             const std::vector<config::SweepPoint>& points);

// The choice of a design: the most KV heads that are hardly slower than the fastest, with the block size that a study
// of it alone would recommend for them.
[[nodiscard]] DecidedDesign decide_design(const Design& design, sim::Machine machine);

// All designs of the sweep that start from one machine.
struct DesignStudy {
  sim::Machine own;  // that machine
  std::vector<DecidedDesign> designs;
  std::vector<sim::InputSensitivity> input_sensitivities;  // of the first design's step, on `own`
};

// Of each of `machines`, by name or file. Precondition: not refused. Throws InputError.
[[nodiscard]] std::vector<DesignStudy> study_designs(const config::Scenario& scenario,
                                                     const std::vector<std::string>& machines);

}  // namespace dculab::study
