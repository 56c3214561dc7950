#include "engine/regroup/mean_pool.hpp"

#include <string>
#include <utility>

#include "core/error.hpp"
#include "engine/checkpoint/stored_values.hpp"
#include "engine/memory/anonymous_memory.hpp"

namespace dculab::engine {
namespace {

// `heads_in` heads of `head_values` values each become heads_in / pooled means.
struct HeadPooling {
  std::size_t heads_out = 0;
  std::size_t pooled = 0;  // heads averaged into one
  std::size_t head_values = 0;
};

void pool_heads(const HeadPooling& pooling, const kernels::WeightView& source, std::byte* destination) {
  const std::size_t head_bytes = pooling.head_values * static_cast<std::size_t>(bits(source.dtype)) / 8;
  const auto* const stored = static_cast<const std::byte*>(source.data);
  std::vector<float> head(pooling.head_values);
  std::vector<float> mean(pooling.head_values);
  for (std::size_t out = 0; out < pooling.heads_out; ++out) {
    std::fill(mean.begin(), mean.end(), 0.0F);
    for (std::size_t i = 0; i < pooling.pooled; ++i) {
      widen(stored + (out * pooling.pooled + i) * head_bytes, source.dtype, head);
      for (std::size_t j = 0; j < head.size(); ++j) mean[j] += head[j];
    }
    for (float& value : mean) value /= static_cast<float>(pooling.pooled);
    narrow(mean, source.dtype, destination + out * head_bytes);
  }
}

}  // namespace

LlamaWeights regrouped(const LlamaWeights& weights, int kv_heads) {
  const ModelShape& shape = weights.shape;
  if (kv_heads < 1 || shape.num_key_value_heads % kv_heads != 0)
    throw InputError("the model's " + std::to_string(shape.num_key_value_heads) + " KV heads cannot be pooled into " +
                     std::to_string(kv_heads) + "; choose a divisor");
  if (kv_heads == shape.num_key_value_heads) return weights;
  LlamaWeights result = weights;
  result.shape = with_kv_heads(shape, kv_heads);
  const auto values = static_cast<std::size_t>(result.shape.kv_width()) * static_cast<std::size_t>(shape.hidden_size);
  const HeadPooling pooling{static_cast<std::size_t>(kv_heads),
                            static_cast<std::size_t>(shape.num_key_value_heads / kv_heads),
                            values / static_cast<std::size_t>(kv_heads)};
  std::size_t total = 0;
  for (const LayerWeights& layer : weights.layers)
    for (const auto* view : {&layer.k_proj, &layer.v_proj})
      total += values * static_cast<std::size_t>(bits(view->dtype)) / 8;
  auto memory = std::make_shared<const AnonymousMemory>(total);
  std::byte* next = memory->data();
  for (LayerWeights& layer : result.layers)
    for (auto* view : {&layer.k_proj, &layer.v_proj}) {
      pool_heads(pooling, *view, next);
      *view = {next, view->dtype, result.shape.kv_width()};
      next += values * static_cast<std::size_t>(bits(view->dtype)) / 8;
    }
  result.memory.push_back(std::move(memory));
  return result;
}

}  // namespace dculab::engine
