// How the kernels of libraries tile: vendors' GEMM libraries and FlashAttention, not this project's own.
//
//   matmul   128 x 256, the most efficient of cuBLAS: NVIDIA, "Matrix multiplication background", section 3. On
//            Hopper two workgroups of a cluster share what they load, as one tile of 256 x 256: CUTLASS,
//            media/docs/efficient_gemm.md
//   prefill  128 query tokens of one head a workgroup: FlashAttention
//   decode   flash: the whole group in one workgroup, contexts split so that the machine is full: FlashAttention,
//            num_splits_heuristic of csrc/flash_attn/flash_api.cpp, on Hopper of hopper/heuristics.h
//            paged: one workgroup a query head, contexts split every 512 tokens while sequences x heads are at most
//            512: vLLM, csrc/attention/paged_attention_v2.cu and vllm/attention/ops/paged_attn.py
//            per_head: one workgroup a query head and 256 tokens: llama.cpp's products of Q and K, row by row
//
// The pass that combines split contexts reads one partial result after the other (csrc/flash_attn/src/
// flash_fwd_kernel.h, combine_attn_seqk_parallel), on Hopper four at a time (hopper/flash_fwd_combine_kernel.h,
// kStages).
#pragma once

#include <cstdint>

#include "core/op.hpp"
#include "core/step_plan.hpp"
#include "lower/attention_walk.hpp"
#include "lower/device.hpp"
#include "lower/kernels.hpp"
#include "lower/matmul.hpp"

namespace dculab::lower {

// Hopper's FlashAttention does not mind splits that get no piece, and leaves contexts of at most 4 pieces whole.
enum class EmptySplits : std::uint8_t { avoided, allowed };

// Into how many parts FlashAttention splits each context: the fewest that reach 85 % of the best wave efficiency.
//   workgroups: without a split; slots: two per compute unit, on Hopper one; pieces: blocks of 128 tokens.
[[nodiscard]] int flash_splits(std::int64_t workgroups, int slots, int pieces,
                               EmptySplits empty = EmptySplits::avoided);

// Loads of partial results that wait for one another, in one execution of decode attention.
[[nodiscard]] double combining_loads(const Device& device, const AttentionWork& work, double partitions_combined);

// Of a GPU.
[[nodiscard]] MatmulTile library_matmul_tile(const Op& op, const Device& device);
[[nodiscard]] AttentionTile library_attention_tile(const Op& op, const StepPlan& step, const Device& device,
                                                   const Kernels& kernels);

}  // namespace dculab::lower
