#include "engine/regroup/head_calibration.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "engine/executors/cpu_executor.hpp"
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

void require_finite(const std::vector<HeadStatistics>& statistics) {
  for (std::size_t layer = 0; layer < statistics.size(); ++layer)
    if (!statistics[layer].is_finite())
      throw InputError("the calibration text makes the heads of layer " + std::to_string(layer) +
                       " NaN or infinite; the weights are damaged");
}

}  // namespace

std::vector<HeadStatistics> observe_heads(const ModelWeights& weights, std::span<const TokenId> tokens,
                                          const CalibrationRun& run) {
  if (tokens.empty()) throw InputError("the calibration text is empty");
  const EngineOptions options = calibration_options(weights.shape);
  const int window = std::min(run.window_tokens, weights.shape.max_position_embeddings);
  std::vector<HeadStatistics> statistics(weights.layers.size(), HeadStatistics(weights.shape, run.second_moments));
  CpuExecutor executor(
      weights,
      {.num_blocks = blocks_for(window, options), .block_size = options.block_size, .dtype = options.kv_cache_dtype},
      run.num_threads);
  executor.observe_ops([&](const Op& op, int layer, std::span<const float> input) {
    HeadStatistics& heads = statistics[static_cast<std::size_t>(layer)];
    if (op.kind == OpKind::attention_prefill) heads.add_qkv(input);
    if (op.weight == WeightSlot::o_proj) heads.add_attention(input);
  });
  for (std::size_t start = 0; start < tokens.size(); start += static_cast<std::size_t>(window)) {
    const auto piece = tokens.subspan(start, std::min(tokens.size() - start, static_cast<std::size_t>(window)));
    executor.run(plan_step(weights.shape, options, window_batch(piece, options)));
    if (run.on_progress)
      run.on_progress(static_cast<double>(start + piece.size()) / static_cast<double>(tokens.size()));
  }
  require_finite(statistics);
  return statistics;
}

}  // namespace dculab::engine
