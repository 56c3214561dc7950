#include "sim/study/library_tiling.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "lower/device.hpp"

namespace dculab::sim {
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

[[nodiscard]] int ceil_divide(int a, int b) { return (a + b - 1) / b; }

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

namespace {

[[nodiscard]] int flash_partition(const Machine& machine, std::int64_t workgroups, int longest) {
  const int pieces = ceil_divide(longest, kPieceTokens);
  const int splits = lower::is_hopper(machine)
                         ? flash_splits(workgroups, machine.compute_units, pieces, EmptySplits::allowed)
                         : flash_splits(workgroups, 2 * machine.compute_units, pieces, EmptySplits::avoided);
  return splits == 1 ? 0 : ceil_divide(pieces, splits) * kPieceTokens;
}

}  // namespace

double combining_loads(const Machine& machine, const Op& attention) {
  if (machine.kind != lower::DeviceKind::gpu || attention.attention.partitions_combined == 0) return 0;
  const double splits = attention.attention.partitions_combined / attention.attention.num_sequences;
  return lower::is_hopper(machine) ? splits / kHopperStages : splits;
}

KernelTiling library_tiling(const Machine& machine, const ModelShape& model, const Batch& batch, DecodeKernel decode) {
  if (machine.kind == lower::DeviceKind::cpu) return cpu_kernel_tiling(model.group_size());
  KernelTiling tiling;
  tiling.matmul_rows = lower::is_hopper(machine) ? 256 : 128;
  tiling.matmul_columns = 256;
  tiling.prefill_query_tokens = 128;
  tiling.partition_tokens = 0;
  std::int64_t decodes = 0;
  int longest = 0;
  for (const SequenceSlice& slice : batch.sequences) {
    if (slice.phase != Phase::decode) continue;
    ++decodes;
    longest = std::max(longest, slice.context_tokens());
  }
  if (decode != DecodeKernel::flash || decodes == 0) tiling.query_heads_per_workgroup = 1;
  if (decodes == 0) return tiling;
  if (decode == DecodeKernel::flash)
    tiling.partition_tokens = flash_partition(machine, decodes * model.num_key_value_heads, longest);
  if (decode == DecodeKernel::per_head) tiling.partition_tokens = kPerHeadPartition;
  if (decode == DecodeKernel::paged && decodes * model.num_attention_heads <= kPagedMostSplitHeads)
    tiling.partition_tokens = kPagedPartition;
  return tiling;
}

}  // namespace dculab::sim
