// A study of drafts: the points of its sweep, and how many tokens to draft at each batch.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/scenario_file.hpp"
#include "study/decide/speculation_advice.hpp"

namespace dculab::study {

// Whether the scenario asks for one: it drafts, and asks for nothing that a search or a simulation answers.
[[nodiscard]] bool is_draft_study(const config::Scenario& scenario);

// A point of a sweep with what its answer follows from.
struct DraftPoint {
  std::vector<config::Override> choices;
  DraftQuestion question;
  int batch = 1;

  [[nodiscard]] const DraftShape& shape() const { return question.options.speculative_config.shape; }
};

// Of a step, or of a decode in the middle of requests that are served. Throws InputError where nothing is drafted, or
// the model's context does not hold the drafts.
[[nodiscard]] DraftPoint draft_point(const config::SweepPoint& point, const sim::Machine& machine);

// The points of a sweep that differ in batch and draft alone, and what they come to.
struct DraftAdvice {
  std::vector<config::Override> others;  // choices that they have in common
  struct OfBatch {
    int batch = 1;
    std::optional<DraftOutcome> best;  // nothing: no draft pays
  };
  std::vector<OfBatch> batches;
  struct OfShape {
    DraftShape shape;
    BreakEven break_even;
  };
  std::vector<OfShape> shapes;
};

// `outcomes`: of each point.
[[nodiscard]] std::vector<DraftAdvice> advise(const std::vector<DraftPoint>& points,
                                              const std::vector<DraftOutcome>& outcomes);

struct DraftStudy {
  std::vector<DraftPoint> points;
  std::vector<DraftOutcome> outcomes;  // of each point
  std::vector<DraftAdvice> advice;
  std::vector<std::string> refused;  // refused_kv() of the points; a reason may come several times
};

// Throws InputError where the scenario's step is a prefill, which no draft follows.
void refuse_drafted_prefill(const config::Scenario& scenario);

// On a machine by name or file. Throws InputError.
[[nodiscard]] DraftStudy study_drafts(const config::Scenario& scenario, const std::string& machine);

}  // namespace dculab::study
