// The teaching table of memory: weights and KV cache of a model with any number of KV heads g.
//
//   per layer, FP16, 4D MLP:  weights 20 D^2 + 4 D g H bytes (MHA: 24 D^2),  KV 4 L g H bytes per sequence (MHA: 4 L D)
//   crossover                 KV outgrows the weights of a layer beyond L = weights / KV per token (MHA: L > 6 D)
//
// and with latents (MLA) of r values and a rotated key of d_R values: KV (r + d_R) values a token and layer, whatever
// the number of heads; DeepSeek-V2 has r = 4 H and d_R = H / 2, as much as GQA with 2.25 KV heads.
//
// Sources: DeepSeek-V2, arXiv:2405.04434, table 1; COMP6211J "Generative Inference Optimization", slides "Memory
// Footprint". Real models: their own matrices, with embedding, head and norms counted apart.
#pragma once

#include <vector>

#include "core/dtype.hpp"
#include "core/units.hpp"
#include "model/model_shape.hpp"

namespace dculab::sim {

struct Footprint {
  int kv_heads = 0;          // 1 of latents
  bool is_latent = false;    // MLA
  Bytes weight_bytes;        // of everything
  Bytes layer_weight_bytes;  // matrices of a layer, the mean of all
  Bytes embedding_bytes;
  Bytes head_bytes;             // 0 when tied to the embedding
  Bytes norm_bytes;             // norms and biases
  Bytes kv_bytes;               // of all layers, all sequences, with their residuals and recurrent states
  Bytes kv_in_windows;          // of kv_bytes, where what has left the windows of layers is freed
  Bytes kv_bytes_per_token;     // of all layers
  Bytes layer_kv_bytes;         // of a layer, the mean of all, all sequences
  double crossover_tokens = 0;  // per sequence of this batch: beyond it KV takes more than the layers' matrices
};

struct FootprintRequest {
  int tokens = 0;  // per sequence
  int batch = 1;
  WeightFormat weights{};
  Dtype kv_cache_dtype = Dtype::f16;
  int kv_residual_tokens = 128;  // kivi4, kivi2: of each sequence, in F16 besides its blocks
};

// Precondition: problems(model) is empty.
[[nodiscard]] Footprint footprint(const ModelShape& model, const FootprintRequest& request);

// One row for every number of KV heads that divides the query heads: MHA first, then GQA and MQA; MLA last. Where the
// model keeps latents, the others are of as many query heads, each of the size of its values; where it does not, MLA
// is in DeepSeek-V2's proportions. No row of MLA where the KV cache's format is one of K and V alone.
[[nodiscard]] std::vector<Footprint> footprint_table(const ModelShape& model, const FootprintRequest& request);

}  // namespace dculab::sim
