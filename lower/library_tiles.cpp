#include "lower/library_tiles.hpp"

#include <algorithm>
#include <cmath>

#include "lower/dculab_gpu/gptq_plan.hpp"

namespace dculab::lower {
namespace {

constexpr int kPieceTokens = 128;  // kBlockN of the split kernel at head_dim 128
constexpr int kMostSplits = 128;
constexpr int kPiecesNeverSplit = 4;
constexpr int kPagedPartition = 512;       // vLLM's _PARTITION_SIZE
constexpr int kPagedMostSplitHeads = 512;  // sequences x heads beyond which its v1 kernel walks contexts whole
constexpr int kPerHeadPartition = 256;
constexpr double kHopperStages = 4;
constexpr double kNearlyFull = 0.8;
constexpr double kGoodEnough = 0.85;

[[nodiscard]] int flash_partition(const Device& device, std::int64_t workgroups, int longest) {
  const int pieces = ceil_divide(longest, kPieceTokens);
  const int splits = is_hopper(device)
                         ? flash_splits(workgroups, device.compute_units, pieces, EmptySplits::allowed)
                         : flash_splits(workgroups, 2 * device.compute_units, pieces, EmptySplits::avoided);
  return splits == 1 ? 0 : ceil_divide(pieces, splits) * kPieceTokens;
}

struct Decodes {
  std::int64_t sequences = 0;
  int longest = 0;  // context
};

[[nodiscard]] Decodes decodes_of(const Batch& batch) {
  Decodes decodes;
  for (const SequenceSlice& slice : batch.sequences) {
    if (slice.phase != Phase::decode) continue;
    ++decodes.sequences;
    decodes.longest = std::max(decodes.longest, slice.context_tokens());
  }
  return decodes;
}

}  // namespace

int flash_splits(std::int64_t workgroups, int slots, int pieces, EmptySplits empty) {
  if (static_cast<double>(workgroups) >= kNearlyFull * slots) return 1;
  if (empty == EmptySplits::allowed && pieces <= kPiecesNeverSplit) return 1;
  const int most = std::min({kMostSplits, slots, pieces});
  const auto efficiency = [&](int splits) {
    // As many pieces each as with one split less: the last would be empty.
    const bool last_empty = splits > 1 && ceil_divide(pieces, splits) == ceil_divide(pieces, splits - 1);
    if (last_empty && empty == EmptySplits::avoided) return 0.0;
    const double waves = static_cast<double>(workgroups) * splits / slots;
    return waves / std::ceil(waves);
  };
  double best = 0;
  for (int splits = 1; splits <= most; ++splits) best = std::max(best, efficiency(splits));
  for (int splits = 1; splits <= most; ++splits)
    if (efficiency(splits) >= kGoodEnough * best) return splits;
  return 1;
}

// vLLM's FlashAttention takes blocks of a multiple of 16 tokens: vllm/attention/backends/flash_attn.py.
KernelLibrary attention_library(const Op& op, const Kernels& kernels) {
  for (const KernelLibrary library : kernels.attention)
    if (library != KernelLibrary::flash_attention || op.attention.block_size % 16 == 0) return library;
  return kernels.attention.back();
}

double combining_loads(const Device& device, const AttentionWork& work, double partitions_combined) {
  if (partitions_combined == 0) return 0;
  const double splits = partitions_combined / work.num_sequences;
  return is_hopper(device) ? splits / kHopperStages : splits;
}

MatmulTile library_matmul_tile(const Op& op, const Device& device) {
  const int rows = is_hopper(device) ? 256 : 128;
  return {op.weight_format.dtype == Dtype::int4 ? dculab_gpu::kGptqTileRows : rows, 256};
}

AttentionTile library_attention_tile(const Op& op, const StepPlan& step, const Device& device, const Kernels& kernels) {
  const AttentionWork& work = op.attention;
  const Decodes decodes = decodes_of(step.batch);
  const KernelLibrary library = attention_library(op, kernels);
  const bool flash = library == KernelLibrary::flash_attention;
  AttentionTile tile{.query_tokens = 128, .query_heads = 1};
  if (flash && decodes.sequences > 0) tile.query_heads = work.num_query_heads / work.num_kv_heads;
  if (decodes.sequences == 0) return tile;
  if (flash) tile.partition_tokens = flash_partition(device, decodes.sequences * work.num_kv_heads, decodes.longest);
  if (library == KernelLibrary::per_head) tile.partition_tokens = kPerHeadPartition;
  if (library == KernelLibrary::paged_attention && decodes.sequences * work.num_query_heads <= kPagedMostSplitHeads)
    tile.partition_tokens = kPagedPartition;
  return tile;
}

}  // namespace dculab::lower
