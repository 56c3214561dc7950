// Starts the kernel, or kernels, of one operation on a stream. Implemented by the other files of this folder, each
// compiled once per build (runtime.hpp). Throws InputError for what no kernel is compiled for.
#pragma once

#include "kernels/gpu/args.hpp"
#include "kernels/gpu/expert_args.hpp"
#include "kernels/gpu/kv/critical_blocks.hpp"
#include "kernels/gpu/kv/heavy_hitters.hpp"
#include "kernels/gpu/kv/kivi.hpp"
#include "kernels/gpu/kv/sinks.hpp"
#include "kernels/gpu/latent_args.hpp"
#include "kernels/gpu/runtime_api.hpp"
#include "lower/dculab_gpu/split_k.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

struct PagedAttentionLaunch;

void start(Stream& stream, const Embedding& args);
void start(Stream& stream, const RmsNorm& args);
void start(Stream& stream, const LayerNorm& args);
void start(Stream& stream, const RotaryEmbedding& args);
void start(Stream& stream, const HeadNorm& args);
void start(Stream& stream, const ResidualAdd& args);
void start(Stream& stream, const SoftCap& args);
void start(Stream& stream, const PartRotaryEmbedding& args);
void start(Stream& stream, const GeluAndMul& args);
void start(Stream& stream, const SiluAndMul& args);
void start(Stream& stream, const Gelu& args);
void start(Stream& stream, const TopK& args);

void start(Stream& stream, const ReshapeAndCache& args);
void start(Stream& stream, const CopyBlocks& args);

void start(Stream& stream, const PagedAttention& args);
void start(Stream& stream, const PagedAttentionLaunch& partitions);  // merges what the first pass has found
void start(Stream& stream, const PrefillAttention& args);

// Both of attention over a kivi4 or kivi2 cache.
void start_kivi(Stream& stream, const PagedAttentionLaunch& described);
void start_kivi(Stream& stream, const PrefillAttention& args);
void start_quantize_groups(Stream& stream, const KiviTokens& args);
void start_keep_residual(Stream& stream, const KiviTokens& args);

void start(Stream& stream, const UpdateBlockBounds& args);
void start(Stream& stream, const ChooseCriticalBlocks& args);

void start(Stream& stream, const KeepSinkKeys& args);
void start(Stream& stream, const ShiftSinkKeys& args);
void start(Stream& stream, const AttentionScores& args);

void start(Stream& stream, const LatentAttention& args);
void start(Stream& stream, const GatherLatents& args);
void start(Stream& stream, const StoreExpanded& args);
void start_absorb_k(Stream& stream, const Absorb& args);
void start_absorb_v(Stream& stream, const Absorb& args);

void start(Stream& stream, const Matmul& args);
void start(Stream& stream, const GptqMatmul& args);
void start(Stream& stream, const Int8Matmul& args);
void start(Stream& stream, const QuantizeRows& args);
void start(Stream& stream, const SplitKSum& args);

void start(Stream& stream, const RouteTokens& args);
void start(Stream& stream, const ExpertMatmul& args);
void start(Stream& stream, const ExpertGptqMatmul& args);
void start(Stream& stream, const CombineExperts& args);

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
