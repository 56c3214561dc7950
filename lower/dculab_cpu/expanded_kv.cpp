#include "lower/dculab_cpu/expanded_kv.hpp"

#include <algorithm>
#include <numeric>

namespace dculab::lower::dculab_cpu {
namespace {

// Rows of a matrix in that format that can only be used together. A shape does not say how large the blocks of FP8 are:
// 128 rows, as DeepSeek's.
[[nodiscard]] int most_inseparable_rows(Dtype dtype) {
  constexpr int kBlockRows = 128;
  if (dtype == Dtype::fp8_e4m3) return kBlockRows;
  return bits(dtype) <= 8 ? kExpandedStripRows : 1;
}

}  // namespace

int fewest_heads(int num_heads, int rows_of_head, int inseparable_rows) {
  return std::min(num_heads, inseparable_rows / std::gcd(inseparable_rows, rows_of_head));
}

Bytes expanded_memory(const ModelShape& shape, Bytes most) {
  Bytes expanded, pieces;
  for (const LayerKind& kind : shape.kinds) {
    const Mla* const attention = kind.mla();
    if (attention == nullptr) continue;
    const Dtype dtype = shape.slot_format(WeightSlot::kv_b_proj, kind, shape.layer_format()).dtype;
    const int blocks = (shape.max_position_embeddings + kExpandedBlockTokens - 1) / kExpandedBlockTokens;
    const Bytes of_head = storage(Dtype::f32, attention->qk_head_dim() + attention->v_head_dim);
    const double longest = static_cast<double>(blocks) * kExpandedBlockTokens;
    const int heads = attention->num_attention_heads;
    const int fewest = fewest_heads(heads, attention->expanded_width() / heads, most_inseparable_rows(dtype));
    expanded = std::max({expanded, most, longest * fewest * of_head});
    pieces =
        std::max(pieces, storage(Dtype::f32, kExpandedPieceTokens * (static_cast<double>(attention->latent_width()) +
                                                                     attention->expanded_width())));
  }
  return expanded + pieces;
}

}  // namespace dculab::lower::dculab_cpu
