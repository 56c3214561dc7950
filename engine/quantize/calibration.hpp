// Calibration text on its way through a model, one layer at a time: all of the text has left a layer before the next
// one is begun, so that a layer can be changed once it has been looked at.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/step_plan.hpp"
#include "engine/checkpoint/model_weights.hpp"
#include "engine/executors/cpu_executor.hpp"

namespace dculab::engine {

// The weights in F32, copied, so that changed ones can take their place whatever the checkpoint's dtype.
[[nodiscard]] ModelWeights widened_to_f32(const ModelWeights& weights);

class Calibration {
 public:
  // The tokens are cut into sequences of 2048 tokens, or max_position_embeddings if that is less. Precondition: weights
  // are F32. Throws InputError for tokens outside the vocabulary.
  Calibration(const ModelWeights& weights, std::span<const TokenId> tokens, int num_threads);

  // Called with the op and what it reads, [tokens of a sequence, op.k], once for each sequence.
  using Observer = std::function<void(const Op& op, std::span<const float> input)>;

  // Runs `layer` on all of the text and shows what its matmuls read. The text stays where it is.
  void observe(int layer, const Observer& observer);

  // The same, and shows its Q, K and V, before rotary embedding: [tokens of a sequence, query_width + 2 * kv_width].
  void observe_qkv(int layer, const Observer& observer);

  // Shows what lm_head reads of all of the text, once it has left the last layer.
  void observe_head(const Observer& observer);

  // Runs `layer` as its weights are now; the text moves on to the next one.
  void advance(int layer);

  [[nodiscard]] ModelWeights& weights() { return executor_.weights(); }
  [[nodiscard]] kernels::cpu::ThreadPool& threads() { return executor_.threads(); }
  [[nodiscard]] bool has_text() const { return !plans_.empty(); }

 private:
  void observe(int layer, OpKind kind, const Observer& observer);

  CpuExecutor executor_;
  std::vector<StepPlan> plans_;                   // one for each sequence
  std::vector<CpuExecutor::HiddenState> states_;  // of each sequence, before the layer
};

}  // namespace dculab::engine
