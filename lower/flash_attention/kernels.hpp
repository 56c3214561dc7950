// FlashAttention, Dao-AILab/flash-attention.
//
//   prefill  128 query tokens of one head a workgroup
//   decode   the whole group in one workgroup, contexts split so that the device is full: num_splits_heuristic of
//            csrc/flash_attn/flash_api.cpp, on Hopper of hopper/heuristics.h
//   decode of several new tokens
//            as prefill, without splits: heads become rows where a sequence has one query alone (flash_api.cpp,
//            seqlenq_ngroups_swapped), and only then mha_varlen_fwd splits. On Hopper as decode: rows of a tile are
//            (token, head of the group) pairs (hopper/pack_gqa.h)
//
// The pass that combines split contexts reads one partial result after the other (csrc/flash_attn/src/
// flash_fwd_kernel.h, combine_attn_seqk_parallel), on Hopper four at a time (hopper/flash_fwd_combine_kernel.h,
// kStages). Blocks are multiples of 16 tokens in vLLM's fork (vllm/attention/backends/flash_attn.py), of 256 upstream.
//
// Each thread looks up where its rows of a tile of K lie, then those of V (vLLM's fork, csrc/flash_attn/src/utils.h);
// on Hopper warps do that which fetch ahead (hopper/paged_kv.h).
//
// ALiBi: FlashAttention 2 takes slopes (flash_api.cpp, set_params_alibi). FlashAttention 3 (hopper/) takes none, so
// vLLM calls 2 for models that have them (vllm/v1/attention/backends/fa_utils.py).
#pragma once

#include <cstdint>

#include "lower/kernel_library.hpp"

namespace dculab::lower::flash_attention {

extern const AttentionKernel kFlashAttention2;
extern const AttentionKernel kFlashAttention3;

// Hopper's FlashAttention does not mind splits that get no piece, and leaves contexts of at most 4 pieces whole.
enum class EmptySplits : std::uint8_t { avoided, allowed };

// Into how many parts each context is split: the fewest that reach 85 % of the best wave efficiency.
//   workgroups: without a split; slots: two per compute unit, on Hopper one; pieces: blocks of K and V.
[[nodiscard]] int flash_splits(std::int64_t workgroups, int slots, int pieces,
                               EmptySplits empty = EmptySplits::avoided);

// Tokens of a part; 0 where contexts stay whole.
[[nodiscard]] int split_tokens(std::int64_t workgroups, int slots, int longest, int piece_tokens, EmptySplits empty);

}  // namespace dculab::lower::flash_attention
