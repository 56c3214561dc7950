// What would this model be with fewer KV heads? Multi-head to grouped-query attention by mean pooling.
#pragma once

#include "engine/checkpoint/model_weights.hpp"

namespace dculab::engine {

// The same model with `kv_heads` KV heads: each new K and V head is the mean of the neighbouring heads it replaces,
// which is how GQA (Ainslie et al. 2023, section 2.1) starts its uptraining. Weights that do not change are shared.
// Throws InputError unless kv_heads divides num_key_value_heads.
[[nodiscard]] ModelWeights regrouped(const ModelWeights& weights, int kv_heads);

}  // namespace dculab::engine
