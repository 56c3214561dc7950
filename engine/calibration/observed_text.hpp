// Runs a model over calibration text, window after window, and shows what its ops read.
#pragma once

#include <functional>
#include <span>

#include "core/batch.hpp"
#include "engine/checkpoint/model_weights.hpp"
#include "engine/executors/cpu_executor.hpp"

namespace dculab::engine {

struct TextRun {
  int window_tokens = 512;  // the text is cut into pieces of this size, each read on its own; at most the context
  int num_threads = 1;
  std::function<void(double share)> on_progress{};
};

// The KV cache is F32. Throws InputError when the text is empty or holds tokens the model does not know.
void observe_text(const ModelWeights& weights, std::span<const TokenId> tokens, const TextRun& run,
                  CpuExecutor::OpObserver observer);

}  // namespace dculab::engine
