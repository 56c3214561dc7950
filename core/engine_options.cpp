#include "core/engine_options.hpp"

#include <algorithm>
#include <bit>

namespace dculab {

KernelTiling cpu_kernel_tiling(int group_size) {
  constexpr int kQueryRows = 128;
  KernelTiling tiling;
  tiling.matmul_rows = 1 << 20;
  tiling.matmul_columns = 1 << 20;
  tiling.prefill_query_tokens = std::max(1, kQueryRows / group_size);
  return tiling;
}

KernelTiling gpu_kernel_tiling(int group_size, int head_dim) {
  const int query_rows = head_dim <= 160 ? 64 : 32;
  KernelTiling tiling;
  tiling.matmul_rows = 128;
  tiling.matmul_columns = 128;
  tiling.prefill_query_tokens = std::max(1, query_rows / group_size);
  return tiling;
}

std::vector<std::string> problems(const EngineOptions& options) {
  std::vector<std::string> found;
  const auto refuse = [&found](bool wrong, std::string text) {
    if (wrong) found.push_back(std::move(text));
  };
  const int block_size = options.block_size;
  refuse(block_size < 1 || block_size > 256 || !std::has_single_bit(static_cast<unsigned>(block_size)),
         "block_size must be a power of two from 1 to 256, not " + std::to_string(block_size));
  refuse(options.max_num_seqs < 1, "max_num_seqs must be at least 1");
  refuse(options.max_num_batched_tokens < 1, "max_num_batched_tokens must be at least 1");
  refuse(!(options.gpu_memory_utilization > 0 && options.gpu_memory_utilization <= 1),
         "gpu_memory_utilization must lie in (0, 1]");
  refuse(options.tiling.partition_tokens < 0, "partition_tokens must not be negative");
  refuse(options.tiling.query_heads_per_workgroup < 0, "query_heads_per_workgroup must not be negative");
  return found;
}

}  // namespace dculab
