#include "sim/study/library_tiling.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace dculab::sim {
namespace {

constexpr int kPieceTokens = 128;  // kBlockN of the split kernel at head_dim 128
constexpr int kMostSplits = 128;
constexpr double kNearlyFull = 0.8;
constexpr double kGoodEnough = 0.85;

[[nodiscard]] int ceil_divide(int a, int b) { return (a + b - 1) / b; }

}  // namespace

int flash_splits(int workgroups, int slots, int pieces) {
  if (workgroups >= kNearlyFull * slots) return 1;
  const int most = std::min({kMostSplits, slots, pieces});
  const auto efficiency = [&](int splits) {
    // As many pieces each as with one split less: the last would be empty.
    if (splits > 1 && ceil_divide(pieces, splits) == ceil_divide(pieces, splits - 1)) return 0.0;
    const double waves = static_cast<double>(workgroups) * splits / slots;
    return waves / std::ceil(waves);
  };
  double best = 0;
  for (int splits = 1; splits <= most; ++splits) best = std::max(best, efficiency(splits));
  for (int splits = 1; splits <= most; ++splits)
    if (efficiency(splits) >= kGoodEnough * best) return splits;
  return 1;
}

KernelTiling library_tiling(const Machine& machine, const ModelShape& model, const Batch& batch) {
  if (machine.kind == MachineKind::cpu) return cpu_kernel_tiling(model.group_size());
  KernelTiling tiling;
  tiling.matmul_rows = 128;
  tiling.matmul_columns = 256;
  tiling.prefill_query_tokens = 128;
  int decodes = 0;
  int longest = 0;
  for (const SequenceSlice& slice : batch.sequences) {
    if (slice.phase != Phase::decode) continue;
    ++decodes;
    longest = std::max(longest, slice.context_tokens());
  }
  if (decodes == 0) return tiling;
  const int pieces = ceil_divide(longest, kPieceTokens);
  const int splits = flash_splits(decodes * model.num_key_value_heads, 2 * machine.compute_units, pieces);
  tiling.partition_tokens = splits == 1 ? 0 : ceil_divide(pieces, splits) * kPieceTokens;
  return tiling;
}

}  // namespace dculab::sim
