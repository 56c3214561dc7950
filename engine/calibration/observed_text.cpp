#include "engine/calibration/observed_text.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/error.hpp"
#include "model/plan_step.hpp"

namespace dculab::engine {
namespace {

EngineOptions calibration_options(const ModelShape& shape) {
  EngineOptions options;
  options.kv_cache_dtype = Dtype::f32;
  options.activation_dtype = Dtype::f32;
  options.weights = shape.layer_format();
  return options;
}

int blocks_for(int tokens, const EngineOptions& options) {
  return (tokens + options.block_size - 1) / options.block_size;
}

// A whole prefill that wants a single row of logits.
Batch window_batch(std::span<const TokenId> tokens, const EngineOptions& options) {
  Batch batch;
  const int count = static_cast<int>(tokens.size());
  batch.sequences.push_back({.id = 0, .phase = Phase::prefill, .num_computed_tokens = 0, .num_new_tokens = count});
  batch.token_ids.assign(tokens.begin(), tokens.end());
  batch.block_tables.emplace_back(static_cast<std::size_t>(blocks_for(count, options)));
  std::iota(batch.block_tables[0].begin(), batch.block_tables[0].end(), 0);
  return batch;
}

}  // namespace

void observe_text(const ModelWeights& weights, std::span<const TokenId> tokens, const TextRun& run,
                  CpuExecutor::OpObserver observer) {
  if (tokens.empty()) throw InputError("the calibration text is empty");
  const EngineOptions options = calibration_options(weights.shape);
  const int window = std::min(run.window_tokens, weights.shape.max_position_embeddings);
  CpuExecutor executor(
      weights,
      {.num_blocks = blocks_for(window, options), .block_size = options.block_size, .dtype = options.kv_cache_dtype},
      run.num_threads);
  executor.observe_ops(std::move(observer));
  for (std::size_t start = 0; start < tokens.size(); start += static_cast<std::size_t>(window)) {
    const auto piece = tokens.subspan(start, std::min(tokens.size() - start, static_cast<std::size_t>(window)));
    executor.run(plan_step(weights.shape, options, window_batch(piece, options)));
    if (run.on_progress)
      run.on_progress(static_cast<double>(start + piece.size()) / static_cast<double>(tokens.size()));
  }
}

}  // namespace dculab::engine
