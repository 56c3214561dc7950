#include "kernels/gpu/kv/critical_blocks.hpp"

#include "core/error.hpp"

namespace dculab::kernels::gpu {
namespace {

void require(bool holds, const char* what) {
  if (!holds) throw InputError(std::string("attention over critical blocks on the GPU: ") + what);
}

}  // namespace

PagedAttention over_chosen_blocks(const PagedAttention& attention, const ChosenBlocks& chosen, int max_chosen_len) {
  require(attention.alibi_slopes == nullptr, "ALiBi is not supported");
  require(attention.sliding_window == 0, "a sliding window is not supported");
  require(attention.queries.start_loc == nullptr, "several new tokens of a sequence are not supported");
  const int kv_heads = attention.cache.num_kv_heads;
  const std::int64_t row = std::int64_t{attention.num_heads} * attention.cache.head_dim;
  require(chosen.queries != nullptr || attention.q_stride == row, "queries that do not lie side by side need a copy");
  PagedAttention args = attention;
  args.num_heads = attention.num_heads / kv_heads, args.num_seqs = attention.num_seqs * kv_heads;
  args.cache.num_kv_heads = 1, args.cache.num_blocks = attention.cache.num_blocks * kv_heads;
  if (chosen.queries != nullptr) args.q.data = chosen.queries;
  args.q_stride = row / kv_heads;
  args.block_tables = chosen.block_tables, args.max_blocks_per_seq = chosen.stride;
  args.context_lens = chosen.context_lens, args.max_context_len = max_chosen_len;
  return args;
}

}  // namespace dculab::kernels::gpu
