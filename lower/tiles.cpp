#include "lower/tiles.hpp"

#include <algorithm>
#include <limits>

#include "lower/dculab_cpu/geometry.hpp"
#include "lower/dculab_gpu/geometry.hpp"
#include "lower/dculab_gpu/gptq_plan.hpp"
#include "lower/library_tiles.hpp"

namespace dculab::lower {
namespace {

[[nodiscard]] int group_size(const AttentionWork& work) { return work.num_query_heads / work.num_kv_heads; }

// Query tokens of a tile of `rows` (token, head of the group) rows.
[[nodiscard]] int tokens_of(int rows, const AttentionWork& work) { return std::max(1, rows / group_size(work)); }

[[nodiscard]] AttentionTile cpu_attention_tile(const AttentionWork& work) {
  return {.query_tokens = tokens_of(dculab_cpu::kQueryRows, work),
          .query_heads = group_size(work),
          .partition_tokens = dculab_cpu::kPartitionTokens};
}

[[nodiscard]] AttentionTile gpu_attention_tile(const Op& op, const AttentionSplit& asked) {
  using dculab_gpu::PrefillArithmetic;
  const AttentionWork& work = op.attention;
  const int rows = dculab_gpu::prefill_tile(PrefillArithmetic::half_pairs, work.head_dim).rows;
  const int heads = asked.query_heads_per_workgroup;
  return {.query_tokens = tokens_of(rows, work),
          .query_heads = heads == 0 ? group_size(work) : std::min(heads, group_size(work)),
          .partition_tokens = asked.partition_tokens};
}

}  // namespace

MatmulTile matmul_tile(const Op& op, const Device& device, const Kernels& kernels) {
  constexpr int kAll = std::numeric_limits<int>::max();
  if (device.kind == DeviceKind::cpu) return {kAll, kAll};
  if (kernels.matmul.front() != KernelLibrary::dculab) return library_matmul_tile(op, device);
  const bool is_gptq = op.weight_format.dtype == Dtype::int4;
  return {is_gptq ? dculab_gpu::kGptqTileRows : dculab_gpu::kGemmLargeRows, dculab_gpu::kGemmColumns};
}

AttentionTile attention_tile(const Op& op, const StepPlan& step, const Device& device, const Kernels& kernels) {
  // H2O's pass: each new token walks what it sees, and the group walks it together.
  if (op.kind == OpKind::attention_scores) return {.query_heads = group_size(op.attention)};
  if (device.kind == DeviceKind::cpu) return cpu_attention_tile(op.attention);
  if (attention_library(op, kernels) != KernelLibrary::dculab) return library_attention_tile(op, step, device, kernels);
  return gpu_attention_tile(op, step.attention_split);
}

}  // namespace dculab::lower
