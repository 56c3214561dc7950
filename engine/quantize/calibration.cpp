#include "engine/quantize/calibration.hpp"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "engine/checkpoint/stored_values.hpp"
#include "model/plan_step.hpp"

namespace dculab::engine {
namespace {

constexpr int kBlockSize = 16;
constexpr int kSequenceTokens = 2048;  // the paper's

[[nodiscard]] int sequence_tokens(const ModelShape& shape) {
  return std::min(kSequenceTokens, shape.max_position_embeddings);
}

// All sequences use the same KV blocks, one after another: a layer's cache is written before it is read.
[[nodiscard]] KvCacheOptions kv_cache_for(const ModelShape& shape) {
  return {.num_blocks = (sequence_tokens(shape) + kBlockSize - 1) / kBlockSize,
          .block_size = kBlockSize,
          .dtype = Dtype::f32};
}

[[nodiscard]] EngineOptions calibration_options() {
  EngineOptions options;
  options.block_size = kBlockSize;
  options.kv_cache_dtype = Dtype::f32;
  options.activation_dtype = Dtype::f32;
  options.weights = {Dtype::f32, 0};
  return options;
}

[[nodiscard]] StepPlan plan_sequence(const ModelShape& shape, std::span<const TokenId> tokens) {
  const int count = static_cast<int>(tokens.size());
  Batch batch;
  batch.sequences.push_back({.phase = Phase::prefill, .num_new_tokens = count, .num_logits = 0});
  batch.token_ids.assign(tokens.begin(), tokens.end());
  std::vector<BlockId> blocks(static_cast<std::size_t>((count + kBlockSize - 1) / kBlockSize));
  std::iota(blocks.begin(), blocks.end(), 0);
  batch.block_tables.push_back(std::move(blocks));
  return plan_step(shape, calibration_options(), std::move(batch));
}

}  // namespace

ModelWeights widened_to_f32(const ModelWeights& weights) {
  ModelWeights source = weights;
  ModelWeights result = weights;
  const std::vector<TensorSlot> from = tensor_slots(source);
  const std::vector<TensorSlot> to = tensor_slots(result);
  for (std::size_t i = 0; i < from.size(); ++i) {
    auto values = std::make_shared<std::vector<float>>(from[i].values());
    widen(from[i].view->data, from[i].view->dtype, *values);
    *to[i].view = {.data = values->data(), .dtype = Dtype::f32, .rows = from[i].rows};
    result.memory.push_back(std::move(values));
  }
  result.shape.dtype = Dtype::f32;
  tie_head(result);
  return result;
}

Calibration::Calibration(const ModelWeights& weights, std::span<const TokenId> tokens, int num_threads)
    : executor_(weights, kv_cache_for(weights.shape), num_threads) {
  const ModelShape& shape = executor_.shape();
  const auto length = static_cast<std::size_t>(sequence_tokens(shape));
  for (std::size_t first = 0; first < tokens.size(); first += length) {
    plans_.push_back(plan_sequence(shape, tokens.subspan(first, std::min(length, tokens.size() - first))));
    executor_.begin(plans_.back());
    states_.push_back(executor_.hidden_state());
  }
}

void Calibration::observe(int layer, const Observer& observer) { observe(layer, OpKind::matmul, observer); }

void Calibration::observe_qkv(int layer, const Observer& observer) { observe(layer, OpKind::rope_and_cache, observer); }

void Calibration::observe(int layer, OpKind kind, const Observer& observer) {
  executor_.observe_ops([&](const Op& op, int, std::span<const float> input) {
    if (op.kind == kind) observer(op, input);
  });
  for (std::size_t i = 0; i < plans_.size(); ++i) {
    executor_.begin(plans_[i]);
    executor_.set_hidden_state(states_[i]);
    executor_.run_layer(plans_[i], layer);
  }
  executor_.observe_ops({});
}

void Calibration::observe_head(const Observer& observer) {
  executor_.observe_ops([&](const Op& op, int, std::span<const float> input) {
    if (op.weight == WeightSlot::lm_head) observer(op, input);
  });
  for (std::size_t i = 0; i < plans_.size(); ++i) {
    Batch batch = plans_[i].batch;
    batch.sequences.front().num_logits = batch.sequences.front().num_new_tokens;
    const StepPlan plan = plan_step(executor_.shape(), calibration_options(), std::move(batch));
    executor_.begin(plan);
    executor_.set_hidden_state(states_[i]);
    executor_.finish(plan);
  }
  executor_.observe_ops({});
}

void Calibration::advance(int layer) {
  for (std::size_t i = 0; i < plans_.size(); ++i) {
    executor_.begin(plans_[i]);
    executor_.set_hidden_state(states_[i]);
    executor_.run_layer(plans_[i], layer);
    states_[i] = executor_.hidden_state();
  }
}

}  // namespace dculab::engine
