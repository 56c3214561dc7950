#include "engine/kv/kivi.hpp"

#include <algorithm>

#include "engine/kv/kv_layouts.hpp"
#include "kernels/cpu/kv/kv_kernels.hpp"
#include "kernels/number_format.hpp"

namespace dculab::engine {

void KiviSlice::begin(const StepPlan& plan, int /*block_size*/) {
  step_rows_ = rows_.assign(plan.batch);
  num_prefills_ = static_cast<int>(std::ranges::count(plan.batch.sequences, Phase::prefill, &SequenceSlice::phase));
}

// Q, K and V of a token lie in a row.
void KiviSlice::bind(kernels::PagedAttentionArgs& args, Phase phase, const KeyRotation& /*rotation*/) const {
  const float* const k = args.q + query_width_;
  const int first_row = phase == Phase::prefill ? 0 : num_prefills_;
  args.cache.extras =
      kernels::KiviExtras{.residual = args.cache.extras.as<kernels::KiviExtras>().residual,
                          .new_kv = {.k = k,
                                     .v = k + kv_width_,
                                     .stride = args.q_stride,
                                     .residual_rows = step_rows_.empty() ? nullptr : step_rows_.data() + first_row}};
}

kernels::KiviArgs KiviSlice::args_of(const kernels::PagedAttentionArgs& attention) const {
  return {.cache = attention.cache,
          .block_tables = attention.block_tables,
          .max_blocks_per_seq = attention.max_blocks_per_seq,
          .query_start_loc = attention.query_start_loc,
          .context_lens = attention.context_lens,
          .num_seqs = attention.num_seqs};
}

void KiviSlice::after_cache(const CpuKvLayer& layer) {
  for (const Phase phase : {Phase::prefill, Phase::decode})
    kernels::cpu::quantize_groups(layer.threads, layer.workspace, args_of(layer.of(phase)));
}

void KiviSlice::after_attention(const CpuKvLayer& layer, Phase phase) {
  kernels::cpu::keep_residual(layer.threads, args_of(layer.of(phase)));
}

namespace {

std::string kivi_beside(const KvCacheOptions& options) {
  return " and " + std::to_string(options.residual_tokens) + " tokens in F16 for each of " +
         std::to_string(options.max_num_seqs) + " sequences";
}

// Records (kernels/kv/kivi.hpp), then the residuals of K and of V.
std::vector<KvPart> kivi_parts(const KvLayerSize& layer, const KvCacheOptions& options) {
  const std::size_t values = layer.heads(options.block_size) * static_cast<std::size_t>(layer.head_dim);
  const Bytes block = kv_storage(options.dtype, static_cast<double>(values), layer.head_dim);
  std::vector<KvPart> parts = block_parts(static_cast<std::size_t>(block.value()), layer, options);
  const std::size_t rows = layer.heads(options.residual_tokens) * static_cast<std::size_t>(options.max_num_seqs);
  parts.resize(4, {.size = rows * static_cast<std::size_t>(layer.head_dim) * sizeof(std::uint16_t)});
  return parts;
}

kernels::KvExtras kivi_extras(std::span<const std::span<std::byte>> parts, const KvCacheOptions& options,
                              int /*layer*/) {
  const auto rows = [&](std::size_t part) { return reinterpret_cast<std::uint16_t*>(parts[part].data()); };
  return kernels::KiviExtras{.residual = {.k = rows(2), .v = rows(3), .tokens = options.residual_tokens}};
}

// Codes are random, and stand for values from -1 to 1.
void fill_kivi(const kernels::KvCacheView& view, std::span<const std::span<std::byte>> parts, std::uint64_t seed) {
  for (const std::span<std::byte> records : parts.first(2)) fill_randomly(records, Dtype::int8, seed);
  const kernels::KiviLayout layout(view);
  const auto scale = kernels::f16_from_f32(2.0F / static_cast<float>((1 << layout.code_bits) - 1));
  for (void* pool : {view.k, view.v})
    for (std::ptrdiff_t record = 0; record < std::ptrdiff_t{view.num_blocks} * view.num_kv_heads; ++record) {
      const kernels::KiviUnit first = layout.unit(pool, record, 0);
      std::fill_n(first.scale, layout.units, scale);
      std::fill_n(first.zero, layout.units, kernels::f16_from_f32(-1.0F));
    }
  for (const std::span<std::byte> residual : parts.last(2)) fill_randomly(residual, Dtype::f16, seed);
}

}  // namespace

const KvLayout kKiviLayout{
    .what_beside = kivi_beside, .parts = kivi_parts, .extras = kivi_extras, .fill_randomly = fill_kivi};

}  // namespace dculab::engine
