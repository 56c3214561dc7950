#include "engine/kv/kivi.hpp"

#include <algorithm>

#include "kernels/cpu/kv/kivi.hpp"

namespace dculab::engine {

void KiviSlice::begin(const StepPlan& plan, int /*block_size*/) {
  step_rows_ = rows_.assign(plan.batch);
  num_prefills_ = static_cast<int>(std::ranges::count(plan.batch.sequences, Phase::prefill, &SequenceSlice::phase));
}

// Q, K and V of a token lie in a row.
void KiviSlice::bind(kernels::PagedAttentionArgs& args, Phase phase) const {
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

}  // namespace dculab::engine
