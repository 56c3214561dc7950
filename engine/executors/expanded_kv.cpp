#include "engine/executors/expanded_kv.hpp"

#include <algorithm>
#include <cstddef>

#include "kernels/cpu/packed_weights.hpp"

namespace dculab::engine {
using namespace lower::dculab_cpu;

namespace {

// To exactly that size. Old values are freed first: they are not read again, and both together would exceed the bound.
void grow_to(std::vector<float>& values, std::int64_t rows, int columns) {
  const auto size = static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
  if (values.size() >= size) return;
  std::vector<float>().swap(values);
  values.resize(size);
}

// K and V of a token and head.
[[nodiscard]] Bytes bytes_of_head(const kernels::LatentSizes& sizes) {
  return storage(Dtype::f32, sizes.qk_head_dim() + sizes.v_head_dim);
}

// Rows of a matrix that can only be used together: those of a strip, or of a block with one scale.
[[nodiscard]] int inseparable_rows(const kernels::WeightView& weight) {
  if (weight.dtype == Dtype::int4 || weight.dtype == Dtype::int8) return kernels::cpu::PackedLayout::kStripRows;
  const bool has_blocks = weight.dtype == Dtype::fp8_e4m3 && weight.scales.row_shift < kernels::Fp8Scales::kAll;
  return has_blocks ? 1 << weight.scales.row_shift : 1;
}

// Rows of a matrix from `first` on. Precondition: inseparable_rows() divide `first`.
[[nodiscard]] kernels::WeightView rows_of(const kernels::WeightView& weight, int columns, int first, int count) {
  kernels::WeightView part = weight;
  part.rows = count;
  const auto* const data = static_cast<const std::byte*>(weight.data);
  if (weight.dtype == Dtype::int4 || weight.dtype == Dtype::int8) {
    const kernels::cpu::PackedLayout layout{weight.rows, columns, weight.dtype, weight.group_size};
    part.data = data + static_cast<std::size_t>(first / layout.kStripRows) * layout.strip_bytes();
    return part;
  }
  part.data = data + std::ptrdiff_t{first} * columns * bits(weight.dtype) / 8;
  if (weight.dtype == Dtype::fp8_e4m3) part.scales.times_256 = weight.scales.of_row(first);
  return part;
}

}  // namespace

kernels::LatentSizes latent_sizes(const Mla& attention) {
  return {.num_heads = attention.num_attention_heads,
          .kv_lora_rank = attention.kv_lora_rank,
          .qk_nope_head_dim = attention.qk_nope_head_dim,
          .qk_rope_head_dim = attention.qk_rope_head_dim,
          .v_head_dim = attention.v_head_dim};
}

static_assert(kernels::cpu::PackedLayout::kStripRows == kExpandedStripRows);

std::span<const ExpandedPart> ExpandedKv::parts(const kernels::LatentSizes& sizes, const AttentionInputs& inputs,
                                                const kernels::WeightView& kv_b_proj) {
  const int fewest = fewest_heads(sizes.num_heads, sizes.expanded_head_dim(), inseparable_rows(kv_b_proj));
  parts_.clear();
  for (int first = 0, end = 0; first < inputs.num_seqs; first = end) {
    double tokens = 0;
    const auto bytes = [&](double of, int heads) { return of * heads * bytes_of_head(sizes); };
    const auto tokens_of = [&](int seq) {
      return static_cast<double>(blocks_of(inputs.context_lens[static_cast<std::size_t>(seq)])) * kBlockTokens;
    };
    for (end = first; end < inputs.num_seqs; ++end) {
      if (end > first && bytes(tokens + tokens_of(end), fewest) > most_) break;
      tokens += tokens_of(end);
    }
    const double fit = std::clamp(most_ / bytes(tokens, fewest), 1.0, static_cast<double>(sizes.num_heads));
    const int heads = static_cast<int>(fit) * fewest;
    for (int head = 0; head < sizes.num_heads; head += heads)
      parts_.push_back({first, end, head, std::min(heads, sizes.num_heads - head)});
  }
  return parts_;
}

void ExpandedKv::lay_out(const kernels::LatentSizes& sizes, const ExpandedPart& part, const AttentionInputs& inputs) {
  sizes_ = sizes, num_blocks_ = 0, max_blocks_per_seq_ = 0;
  sizes_.num_heads = part.num_heads;
  const std::span contexts =
      std::span(inputs.context_lens)
          .subspan(static_cast<std::size_t>(part.first_seq), static_cast<std::size_t>(part.end_seq - part.first_seq));
  for (const std::int32_t context : contexts) max_blocks_per_seq_ = std::max(max_blocks_per_seq_, blocks_of(context));
  block_tables_.assign(contexts.size() * static_cast<std::size_t>(max_blocks_per_seq_), 0);
  for (std::size_t seq = 0; seq < contexts.size(); ++seq)
    for (int block = 0; block < blocks_of(contexts[seq]); ++block)
      block_tables_[seq * static_cast<std::size_t>(max_blocks_per_seq_) + static_cast<std::size_t>(block)] =
          num_blocks_++;
  const std::int64_t rows = std::int64_t{num_blocks_} * kBlockTokens * sizes_.num_heads;
  grow_to(k_, rows, sizes.qk_head_dim());
  grow_to(v_, rows, sizes.v_head_dim);
  grow_to(latents_, kPieceTokens, sizes.kv_lora_rank);
  grow_to(keys_, kPieceTokens, sizes.qk_rope_head_dim);
  grow_to(rows_, kPieceTokens, sizes_.num_heads * sizes.expanded_head_dim());
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

// `latents`: of the whole context.
void ExpandedKv::expand_sequence(const kernels::GatherLatentsArgs& latents, std::int64_t first_slot,
                                 kernels::MatmulArgs& product, kernels::cpu::ThreadPool& threads,
                                 kernels::cpu::Workspace& workspace) {
  kernels::PagedAttentionArgs expanded;
  bind(expanded);
  for (int begin = 0; begin < latents.end; begin += kPieceTokens) {
    kernels::GatherLatentsArgs piece = latents;
    piece.begin = begin, piece.end = std::min(latents.end, begin + kPieceTokens);
    kernels::cpu::gather_latents(threads, piece);
    product.m = piece.end - begin;
    kernels::cpu::matmul(threads, workspace, product);
    kernels::cpu::store_expanded(threads, {.sizes = sizes_,
                                           .expanded = rows_.data(),
                                           .keys = keys_.data(),
                                           .cache = expanded.cache,
                                           .first_slot = first_slot + begin,
                                           .num_tokens = product.m});
  }
}

void ExpandedKv::expand(const kernels::LatentSizes& sizes, const ExpandedPart& part, const AttentionInputs& inputs,
                        const kernels::KvCacheView& latents, kernels::MatmulArgs product,
                        kernels::cpu::ThreadPool& threads, kernels::cpu::Workspace& workspace) {
  lay_out(sizes, part, inputs);
  product.x = latents_.data(), product.y = rows_.data();
  product.weights[0] = rows_of(product.weights[0], product.k, part.first_head * sizes.expanded_head_dim(),
                               part.num_heads * sizes.expanded_head_dim());
  for (int seq = part.first_seq; seq < part.end_seq; ++seq) {
    const std::size_t first =
        static_cast<std::size_t>(seq - part.first_seq) * static_cast<std::size_t>(max_blocks_per_seq_);
    expand_sequence({.sizes = sizes_,
                     .cache = latents,
                     .block_table = inputs.block_tables.data() + std::ptrdiff_t{seq} * inputs.max_blocks_per_seq,
                     .end = inputs.context_lens[static_cast<std::size_t>(seq)],
                     .latents = latents_.data(),
                     .keys = keys_.data()},
                    std::int64_t{block_tables_[first]} * kBlockTokens, product, threads, workspace);
  }
}

}  // namespace dculab::engine
