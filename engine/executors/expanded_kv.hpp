// K and V of all heads that latents of the cache expand to, for the sequences of one phase of a step.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/executors/step_inputs.hpp"
#include "kernels/cpu/latent_kernels.hpp"
#include "model/attention_kind.hpp"

namespace dculab::engine {

[[nodiscard]] kernels::LatentSizes latent_sizes(const Mla& attention);

// A paged cache in F32 that lasts for one attention op. Expanded is the whole context, new tokens included, out of what
// the cache holds of it: so a token's result does not depend on how its prompt was cut into steps.
class ExpandedKv {
 public:
  // `product` multiplies rows of latents by kv_b_proj; its x, y and m are set here. Works in pieces of kPieceTokens, so
  // that what a product gives stays small.
  void expand(const kernels::LatentSizes& sizes, const AttentionInputs& inputs, const kernels::KvCacheView& latents,
              kernels::MatmulArgs product, kernels::cpu::ThreadPool& threads, kernels::cpu::Workspace& workspace);

  // Lets attention read what was expanded: cache and block tables.
  void bind(kernels::PagedAttentionArgs& args);

 private:
  static constexpr int kBlockTokens = 64;
  static constexpr int kPieceTokens = 256;

  void lay_out(const kernels::LatentSizes& sizes, const AttentionInputs& inputs);

  kernels::LatentSizes sizes_;
  int num_blocks_ = 0, max_blocks_per_seq_ = 0;
  std::vector<std::int32_t> block_tables_;    // [sequences, max_blocks_per_seq_]
  std::vector<float> k_, v_;                  // [num_blocks_, heads, kBlockTokens, qk_head_dim or v_head_dim]
  std::vector<float> latents_, keys_, rows_;  // of a piece: latents, rotated keys, what kv_b_proj gives
};

}  // namespace dculab::engine
