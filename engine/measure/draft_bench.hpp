// Decodes with and without drafts, side by side: what drafts are worth on this device.
//
// Sequences decode in the engine's serving loop, so that scheduling, judging and drafting are in the figures. Their
// prompts are random tokens whose K and V are random too; with rejection_sample_method synthetic as many drafts are
// accepted as its rates say, whatever the weights are.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/draft_counts.hpp"
#include "engine/checkpoint/model_weights.hpp"
#include "engine/measure/step_bench.hpp"

namespace dculab::engine {

struct DraftBenchPoint {
  std::string id;
  EngineOptions options;  // with a speculative_config
  int batch = 1;
  int context_tokens = 256;  // of each sequence in the middle of the run
};

struct MeasuredDraft {
  Seconds plain;             // a step that gives each sequence a token
  Seconds verify, drafting;  // a step with drafts, and what came before it
  double tokens = 1;         // of a sequence in such a step, on average
  double speed_up = 1;       // tokens * plain / (verify + drafting), of which the median of the rounds
  double spread = 0;         // half the interquartile range of the rounds
  DraftCounts counts;
};

// Of each point, `options.repeats` rounds of a plain run and one with drafts. Throws InputError when a point cannot be
// run.
[[nodiscard]] std::vector<MeasuredDraft> measure_drafts(const ModelWeights& weights, const ModelWeights& draft,
                                                        std::span<const DraftBenchPoint> points,
                                                        const BenchOptions& options, const BenchProgress& progress);

}  // namespace dculab::engine
