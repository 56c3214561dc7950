// A sweep of steps on one machine: what each point costs, which KV heads and block size it chooses, or where models
// change places, and their input sensitivity.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/scenario_file.hpp"
#include "sim/calibration/confidence.hpp"
#include "sim/calibration/input_sensitivity.hpp"
#include "sim/study/sensitivity.hpp"
#include "study/decide/attention_difference.hpp"
#include "study/decide/compared_models.hpp"
#include "study/decide/priced_points.hpp"

namespace dculab::study {

// What a point comes to.
struct StepFigures {
  std::vector<config::Override> choices;
  int batch = 0;
  Seconds seconds;
  std::optional<sim::Confidence> trust;  // not of points alone
  double tokens_per_second = 0;
  std::string bound;
  std::int64_t max_sequences = 0;
};

// A point, op by op.
struct StepDetails {
  StepPlan plan;
  sim::StepPrice price;
};
inline constexpr std::size_t kDetailedPoints = 128;  // a larger sweep keeps no ops

// Which figure of the machine would change the recommendation.
struct StepSensitivity {
  std::string choice;  // on the machine as it is
  std::vector<sim::Sensitivity> figures;
  double within = 1;  // the largest factor by which they were changed
};

// What a sweep over models asks in the place of a recommendation.
struct SweptModels {
  std::vector<int> batches;
  std::vector<ModelComparison> comparisons;  // without their functions
};

struct StepStudy {
  sim::Machine machine;
  std::string model{};                  // the first point's
  std::vector<std::string> left_out{};  // block sizes that the stack's kernels do not take
  std::vector<StepFigures> points{};
  std::vector<StepDetails> details{};   // of at most kDetailedPoints points, each
  std::vector<std::string> unserved{};  // what our own kernels do not do although it is priced
  std::optional<SweptModels> models{};  // where models are swept; there is no recommendation then
  HeadsQuestion question{};
  EvaluatedChoices choices{};                       // fewer than two: there is nothing to choose
  std::optional<StepDecision> decision{};           // nothing also where accuracy allows none of the choices
  std::map<sim::Choice, AttentionCauses> causes{};  // of the choices, where one was decided
  std::vector<sim::InputSensitivity> input_sensitivities{};
  std::optional<StepSensitivity> sensitivity{};  // of a decision, where it is asked for

  // Several numbers of KV heads were weighed, and nothing says what they cost in accuracy.
  [[nodiscard]] bool leaves_heads_open() const;
  // The most sequences that fit at any point, where the memory of the machine takes the batch of none; else nothing.
  [[nodiscard]] std::optional<std::int64_t> most_where_none_fits() const;
};

// The points alone: without intervals, a question, a decision or input sensitivities, which take tens of times as long
// as a point.
[[nodiscard]] StepStudy price_steps(const config::Scenario& scenario, const sim::Machine& machine);

// `within`: where it is above 1, each figure of the machine is made up to that many times smaller and larger to see
// whether the recommendation changes. Throws InputError.
[[nodiscard]] StepStudy study_steps(const config::Scenario& scenario, const sim::Machine& machine, double within);

}  // namespace dculab::study
