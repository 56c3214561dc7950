// What drafts were worth in runs on this machine, beside what steps without drafts, run before and after, let predict.
//
// The machine is fitted to decodes of one token of both models, without drafts; then every point of a sweep is decoded
// with drafts and without (engine/measure/draft_bench.hpp), and priced on the fitted machine.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "config/scenario_file.hpp"
#include "engine/checkpoint/model_weights.hpp"
#include "engine/measure/draft_bench.hpp"
#include "model/trace.hpp"
#include "sim/calibration/floor_check.hpp"
#include "sim/hardware/machine.hpp"
#include "study/decide/draft_study.hpp"

namespace dculab::study {

// Of a point of the sweep. Throws InputError when the engine cannot run it with drafts that are accepted as asked.
void require_measurable_drafts(const config::Scenario& scenario);

// The scenario's points on `host`, this machine before calibration. Throws InputError for one that cannot be run.
[[nodiscard]] std::vector<DraftPoint> measurable_drafts(const config::Scenario& scenario, const sim::Machine& host);

struct DraftPair {
  engine::ModelWeights target, draft;
};

enum class PairRole : std::uint8_t { target, draft };

// What calibrates: decodes of one token of `model`, which is that of the pair, at each context of the points and at
// powers of two of sequences, up to as many as the points' steps have rows, or 8.
[[nodiscard]] std::vector<engine::BenchPoint> plain_steps(std::span<const DraftPoint> points, const ModelShape& model,
                                                          PairRole role);

// A point, predicted and measured.
struct ComparedDraft {
  std::vector<config::Override> choices;
  DraftOutcome predicted;
  engine::MeasuredDraft measured;

  // Of as many tokens a step as were accepted: what is predicted are times.
  [[nodiscard]] double predicted_speed_up() const { return predicted.speed_up * measured.tokens / predicted.tokens; }
  [[nodiscard]] double ratio() const { return predicted_speed_up() / measured.speed_up; }
};

// |ratio - 1| of the speed-ups.
struct DraftErrors {
  std::int64_t count = 0, within_10 = 0;  // points, and those that are within 10 %
  double median = 0, largest = 0;
};
// Precondition: there are points.
[[nodiscard]] DraftErrors errors_of(std::span<const ComparedDraft> points);

struct MeasuredDrafts {
  Trace plain;                               // of plain_steps(), before the drafts and after them
  std::vector<sim::FloorViolation> refused;  // rows of it
  sim::Machine machine;                      // fitted to the others
  std::vector<ComparedDraft> points;
};

// About the weights that run: random ones have in F16 what is not quantized, whatever the checkpoint has.
[[nodiscard]] DraftQuestion as_it_runs(DraftQuestion asked, const DraftPair& models);

// `points` are measurable_drafts() on `host`. Throws InputError when too few steps without drafts can be true.
[[nodiscard]] MeasuredDrafts measure_drafts(std::vector<DraftPoint> points, const DraftPair& models,
                                            const sim::Machine& host, const engine::BenchOptions& options,
                                            const engine::BenchProgress& progress);

// The scenario's points on `host`, with weights of both models' shapes: those that their folders have, or random ones.
// Throws InputError.
[[nodiscard]] MeasuredDrafts measure_drafts(const config::Scenario& scenario, const sim::Machine& host,
                                            const engine::BenchProgress& progress);

}  // namespace dculab::study
