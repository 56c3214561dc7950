// K and V of heads that latents of the cache expand to, for sequences of one phase of a step.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/units.hpp"
#include "engine/step/step_inputs.hpp"
#include "kernels/cpu/latent_kernels.hpp"
#include "lower/dculab_cpu/expanded_kv.hpp"
#include "model/model_shape.hpp"

namespace dculab::engine {

[[nodiscard]] kernels::LatentSizes latent_sizes(const Mla& attention);

// Sequences [first_seq, end_seq) of a phase, and some of the heads: what is expanded at a time.
struct ExpandedPart {
  int first_seq = 0, end_seq = 0;
  int first_head = 0, num_heads = 0;
};

// A paged cache in F32 that lasts for one attention call. The whole context, new tokens included, is expanded from what
// the cache holds of it, so a token's result does not depend on how its prompt was cut into steps.
class ExpandedKv {
 public:
  // `most`: what K and V may take, unless the fewest heads of one sequence have more.
  explicit ExpandedKv(Bytes most) : most_(most) {}

  // The parts of a phase, one after the other: as many sequences as fit with the fewest heads, then as many heads as
  // fit with those. `kv_b_proj`: whose rows must be cut where its format allows. Valid until the next call.
  [[nodiscard]] std::span<const ExpandedPart> parts(const kernels::LatentSizes& sizes, const AttentionInputs& inputs,
                                                    const kernels::WeightView& kv_b_proj);

  // `product` multiplies rows of latents by all rows of kv_b_proj; its x, y, m and rows are set here. Works in pieces
  // of kPieceTokens, so that what a product gives stays small.
  void expand(const kernels::LatentSizes& sizes, const ExpandedPart& part, const AttentionInputs& inputs,
              const kernels::KvCacheView& latents, kernels::MatmulArgs product, kernels::cpu::ThreadPool& threads,
              kernels::cpu::Workspace& workspace);

  // Lets attention read what was expanded: cache and block tables.
  void bind(kernels::PagedAttentionArgs& args);

 private:
  static constexpr int kBlockTokens = lower::dculab_cpu::kExpandedBlockTokens;
  static constexpr int kPieceTokens = lower::dculab_cpu::kExpandedPieceTokens;

  [[nodiscard]] static int blocks_of(int tokens) { return (tokens + kBlockTokens - 1) / kBlockTokens; }
  void lay_out(const kernels::LatentSizes& sizes, const ExpandedPart& part, const AttentionInputs& inputs);
  void expand_sequence(const kernels::GatherLatentsArgs& latents, std::int64_t first_slot, kernels::MatmulArgs& product,
                       kernels::cpu::ThreadPool& threads, kernels::cpu::Workspace& workspace);

  Bytes most_;
  std::vector<ExpandedPart> parts_;
  kernels::LatentSizes sizes_;  // of the part's heads
  int num_blocks_ = 0, max_blocks_per_seq_ = 0;
  std::vector<std::int32_t> block_tables_;    // [sequences, max_blocks_per_seq_]
  std::vector<float> k_, v_;                  // [num_blocks_, heads, kBlockTokens, qk_head_dim or v_head_dim]
  std::vector<float> latents_, keys_, rows_;  // of a piece: latents, rotated keys, what kv_b_proj gives
};

}  // namespace dculab::engine
