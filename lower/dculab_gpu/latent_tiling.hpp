// How our GPU kernels of MLA (attention over latents, absorbed products, expansion) cut their work: what the launchers
// and the prices go by.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "core/dtype.hpp"
#include "lower/dculab_gpu/geometry.hpp"

namespace dculab::lower::dculab_gpu {

// ---- Attention over latents ----

// A workgroup has a tile of query rows, each of one token and head, and goes over latents in tiles of tokens. A lane
// has two columns of the output of every row.
inline constexpr int kLatentThreads = 256;
inline constexpr int kLatentTokens = 16;
inline constexpr int kMostLatentRank = 2 * kLatentThreads;  // values of a latent
inline constexpr int kMostLatentWidth = 576;                // with the rotated key, as DeepSeek's

// Query rows of a workgroup. Queries over a BF16 cache are floats in shared memory, over others halves.
[[nodiscard]] constexpr int latent_rows(Dtype cache) { return cache == Dtype::bf16 ? 8 : 16; }

// Caches that are read, and widths that a lane's loads of 16 bytes divide.
[[nodiscard]] constexpr bool is_supported_latent(Dtype cache, int rank, int width) {
  const bool is_read =
      cache == Dtype::f16 || cache == Dtype::bf16 || cache == Dtype::fp8_e4m3 || cache == Dtype::fp8_e5m2;
  return is_read && rank <= kMostLatentRank && width <= kMostLatentWidth && rank % 8 == 0 &&
         width % (128 / bits(cache)) == 0;
}

// ---- Absorbed products ----

inline constexpr int kAbsorbThreads = 256;
inline constexpr int kAbsorbRows = 8;  // tokens of a workgroup, at most
inline constexpr int kAbsorbLaneColumns = 8;

// Tokens of a workgroup: 1, 2, 4 or 8.
[[nodiscard]] constexpr int absorb_rows(int tokens) {
  return tokens <= 1 ? 1 : tokens == 2 ? 2 : tokens <= 4 ? 4 : kAbsorbRows;
}

// ---- Expansion ----

// Heads of what latents expand to, as attention of prefill has them; smaller ones are filled up with zeros.
inline constexpr int kExpandedHeadDim = 192, kExpandedValueDim = 128;
inline constexpr int kExpandedBlock = 256;                                   // tokens of a KV block of them
inline constexpr int kExpandedPiece = 1024;                                  // tokens that one product expands
inline constexpr std::int64_t kMostExpandedBytes = std::int64_t{256} << 20;  // at a time; one head's at least

[[nodiscard]] constexpr std::int64_t expanded_bytes(int context, int heads) {
  const std::int64_t tokens = std::int64_t{ceiling_quotient(context, kExpandedBlock)} * kExpandedBlock;
  return tokens * heads * (kExpandedHeadDim + kExpandedValueDim) * bits(Dtype::f16) / 8;
}

// Heads that are expanded at a time, of a sequence with such a context, into `memory` bytes: one at least.
[[nodiscard]] constexpr int expanded_heads(int context, int num_heads, std::int64_t memory) {
  const std::int64_t fit = memory / std::max<std::int64_t>(1, expanded_bytes(context, 1));
  return static_cast<int>(std::clamp<std::int64_t>(fit, 1, num_heads));
}

// ---- What all of them together serve ----

// Sizes of latent attention, as config.json has them.
struct LatentHeads {
  int kv_lora_rank = 0, q_lora_rank = 0, qk_nope_head_dim = 0, qk_rope_head_dim = 0, v_head_dim = 0;
};

// Kernels take multiples of 8 up to `most`.
struct LatentLimit {
  const char* field = "";
  int value = 0, most = 0;

  [[nodiscard]] constexpr bool holds() const { return value % 8 == 0 && value <= most; }
};

[[nodiscard]] constexpr std::array<LatentLimit, 6> latent_limits(const LatentHeads& heads) {
  return {{{"kv_lora_rank", heads.kv_lora_rank, kMostLatentRank},
           {"q_lora_rank", heads.q_lora_rank, 1 << 16},
           {"qk_nope_head_dim", heads.qk_nope_head_dim, kExpandedHeadDim},
           {"qk_rope_head_dim", heads.qk_rope_head_dim, kMostLatentWidth - kMostLatentRank},
           {"qk_nope_head_dim + qk_rope_head_dim", heads.qk_nope_head_dim + heads.qk_rope_head_dim, kExpandedHeadDim},
           {"v_head_dim", heads.v_head_dim, kExpandedValueDim}}};
}

// Of kv_b_proj.
[[nodiscard]] constexpr bool is_supported_latent_weight(Dtype weights) {
  return weights == Dtype::f32 || weights == Dtype::f16 || weights == Dtype::bf16 || weights == Dtype::fp8_e4m3;
}

[[nodiscard]] constexpr bool serves_latents(const LatentHeads& heads, Dtype weights, Dtype cache) {
  const std::array limits = latent_limits(heads);
  return is_supported_latent_weight(weights) &&
         is_supported_latent(cache, heads.kv_lora_rank, heads.kv_lora_rank + heads.qk_rope_head_dim) &&
         std::all_of(limits.begin(), limits.end(), [](const LatentLimit& limit) { return limit.holds(); });
}

}  // namespace dculab::lower::dculab_gpu
