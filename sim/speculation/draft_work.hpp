// What drafting takes, in steps and in memory, on the devices that share the model.
//
//   draft_model  steps of a smaller model, shared by the same devices: the first computes what its KV cache lacks, the
//                others a token each, of a tree all nodes of a level that have children. Prompts go through it too. A
//                step is priced as any other, but for the host's time per step and sequence: nothing is scheduled
//                between the steps of a round, and the model's own step has that time once
//   mtp          the same of the model's own layer for further tokens (model/draft_heads.hpp), with its embedding and
//                head; the layer has a KV cache
//   medusa       one pass of all heads over the last hidden state of each sequence
//   ngram        the host alone: it compares the last tokens with all before, which takes kLookUpPerToken a token of
//                the context. An assumption; a simulated text has no repetitions, so that a draft is always found, and
//                the acceptance is that of the steps that had one
//
// Weights of the drafter lie beside the model's, and its KV in the same blocks (core/drafter.hpp). Between two steps of
// the model the drafter's weights pass through the caches, and the other way round (price_step's `beside`).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/batch.hpp"
#include "core/engine_options.hpp"
#include "core/step_plan.hpp"
#include "core/units.hpp"
#include "model/model_shape.hpp"
#include "sim/hardware/deployment.hpp"
#include "sim/hardware/machine.hpp"
#include "sim/memory/capacity.hpp"
#include "sim/speculation/acceptance.hpp"

namespace dculab::sim {

inline constexpr Seconds kLookUpPerToken{1e-9};

// How a model is drafted for, beside EngineOptions::speculative_config.
struct Speculation {
  std::optional<ModelShape> draft{};  // of SpeculativeMethod::draft_model, whole
  WeightFormat draft_weights{};
  Acceptance acceptance{};
};

// Everything that keeps the model from being drafted for like that; empty when nothing does, or nothing is drafted.
[[nodiscard]] std::vector<std::string> problems(const std::optional<Speculation>& speculation, const ModelShape& model,
                                                const EngineOptions& options, const Deployment& deployment,
                                                const Machine& machine);

// One sequence of a round of drafting.
struct DraftTask {
  SequenceSlice missing{};            // tokens that the drafter's cache lacks; of a prompt, or before a draft
  int max_tokens = 0, max_depth = 0;  // of the draft; 0: none
};

// The tree of that shape, of made-up tokens, as far as there is room for it.
[[nodiscard]] DraftTree draft_of(const DraftShape& shape, int max_tokens, int max_depth);

// `batch` with a draft of that shape behind the last token of each sequence that decodes: the step that verifies them.
[[nodiscard]] Batch with_drafts(Batch batch, const DraftShape& shape);

struct DraftPrice {
  Seconds seconds;
  Joules active;  // of a device beyond power.idle; 0 where the machine's power is not stated
};

class DraftWork {
 public:
  // Machine and options must outlive it. Preconditions: problems() of all are empty;
  // options.speculative_config.enabled().
  DraftWork(const Machine& machine, const ModelShape& model, const EngineOptions& options,
            const ReplicaDevices& devices, const Speculation& speculation);

  [[nodiscard]] SpeculativeMethod method() const { return options_.speculative_config.method; }
  // Whether the drafter has a KV cache, and computes prompts.
  [[nodiscard]] bool has_cache() const {
    return method() == SpeculativeMethod::draft_model || method() == SpeculativeMethod::mtp;
  }

  // The steps of a round, in order; none where nothing is to be computed.
  [[nodiscard]] std::vector<StepPlan> plan(std::span<const DraftTask> tasks) const;

  // What those take on `machine`, which may have other figures than the one it was made for; with the look-up of ngram.
  [[nodiscard]] DraftPrice price(const Machine& machine, std::span<const StepPlan> steps,
                                 std::span<const DraftTask> tasks) const;
  [[nodiscard]] DraftPrice price(std::span<const DraftTask> tasks) const { return price(machine_, plan(tasks), tasks); }

  // Of a device: what the drafter has beside the model.
  [[nodiscard]] DraftMemory memory() const;
  // Of a device, weights of the model that pass between two rounds.
  [[nodiscard]] Bytes model_weights() const { return model_weights_; }

 private:
  void plan_into(StepPlan& plan) const;

  const Machine& machine_;
  const EngineOptions& options_;
  int num_nextn_predict_layers_;
  EngineOptions draft_options_;
  ModelShape part_;  // of the draft model or the layer for further tokens; of the model itself for its heads
  Bytes model_weights_;
};

// A round for `batch` sequences that decode, each of `context` tokens without its draft.
[[nodiscard]] std::vector<DraftTask> uniform_tasks(const DraftShape& shape, int batch, int context);

}  // namespace dculab::sim
