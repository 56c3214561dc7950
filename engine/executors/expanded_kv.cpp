#include "engine/executors/expanded_kv.hpp"

#include <algorithm>
#include <cstddef>

namespace dculab::engine {
namespace {

void grow_to(std::vector<float>& values, std::int64_t rows, int columns) {
  const auto size = static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
  if (values.size() < size) values.resize(size);
}

}  // namespace

kernels::LatentSizes latent_sizes(const Mla& attention) {
  return {.num_heads = attention.num_attention_heads,
          .kv_lora_rank = attention.kv_lora_rank,
          .qk_nope_head_dim = attention.qk_nope_head_dim,
          .qk_rope_head_dim = attention.qk_rope_head_dim,
          .v_head_dim = attention.v_head_dim};
}

void ExpandedKv::lay_out(const kernels::LatentSizes& sizes, const AttentionInputs& inputs) {
  const auto blocks_of = [](int tokens) { return (tokens + kBlockTokens - 1) / kBlockTokens; };
  sizes_ = sizes, num_blocks_ = 0, max_blocks_per_seq_ = 0;
  for (const std::int32_t context : inputs.context_lens)
    max_blocks_per_seq_ = std::max(max_blocks_per_seq_, blocks_of(context));
  block_tables_.assign(inputs.context_lens.size() * static_cast<std::size_t>(max_blocks_per_seq_), 0);
  for (std::size_t seq = 0; seq < inputs.context_lens.size(); ++seq)
    for (int block = 0; block < blocks_of(inputs.context_lens[seq]); ++block)
      block_tables_[seq * static_cast<std::size_t>(max_blocks_per_seq_) + static_cast<std::size_t>(block)] =
          num_blocks_++;
  const std::int64_t rows = std::int64_t{num_blocks_} * kBlockTokens * sizes.num_heads;
  grow_to(k_, rows, sizes.qk_head_dim());
  grow_to(v_, rows, sizes.v_head_dim);
  grow_to(latents_, kPieceTokens, sizes.kv_lora_rank);
  grow_to(keys_, kPieceTokens, sizes.qk_rope_head_dim);
  grow_to(rows_, kPieceTokens, sizes.num_heads * sizes.expanded_head_dim());
}

void ExpandedKv::bind(kernels::PagedAttentionArgs& args) {
  args.cache = {.k = k_.data(),
                .v = v_.data(),
                .dtype = Dtype::f32,
                .num_blocks = num_blocks_,
                .num_kv_heads = sizes_.num_heads,
                .block_size = kBlockTokens,
                .head_dim = sizes_.qk_head_dim(),
                .value_dim = sizes_.v_head_dim};
  args.block_tables = block_tables_.data();
  args.max_blocks_per_seq = max_blocks_per_seq_;
}

void ExpandedKv::expand(const kernels::LatentSizes& sizes, const AttentionInputs& inputs,
                        const kernels::KvCacheView& latents, kernels::MatmulArgs product,
                        kernels::cpu::ThreadPool& threads, kernels::cpu::Workspace& workspace) {
  lay_out(sizes, inputs);
  kernels::PagedAttentionArgs expanded;
  bind(expanded);
  product.x = latents_.data(), product.y = rows_.data();
  for (int seq = 0; seq < inputs.num_seqs; ++seq) {
    const std::int32_t* const table = inputs.block_tables.data() + std::ptrdiff_t{seq} * inputs.max_blocks_per_seq;
    const std::int64_t first_slot =
        std::int64_t{block_tables_[static_cast<std::size_t>(seq) * static_cast<std::size_t>(max_blocks_per_seq_)]} *
        kBlockTokens;
    const int context = inputs.context_lens[static_cast<std::size_t>(seq)];
    for (int begin = 0; begin < context; begin += kPieceTokens) {
      const int end = std::min(context, begin + kPieceTokens);
      kernels::cpu::gather_latents(threads, {.sizes = sizes,
                                             .cache = latents,
                                             .block_table = table,
                                             .begin = begin,
                                             .end = end,
                                             .latents = latents_.data(),
                                             .keys = keys_.data()});
      product.m = end - begin;
      kernels::cpu::matmul(threads, workspace, product);
      kernels::cpu::store_expanded(threads, {.sizes = sizes,
                                             .expanded = rows_.data(),
                                             .keys = keys_.data(),
                                             .cache = expanded.cache,
                                             .first_slot = first_slot + begin,
                                             .num_tokens = end - begin});
    }
  }
}

}  // namespace dculab::engine
