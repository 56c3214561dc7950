#include "engine/executors/kivi_args.hpp"

#include <cstddef>

namespace dculab::engine {

kernels::KiviArgs kivi_args(const ModelShape& model, const StepInputs& inputs, Phase phase, const float* qkv,
                            const KvStorage& kv, int layer) {
  const AttentionInputs& sequences = inputs.attention(phase);
  const std::ptrdiff_t stride = model.heads().query_width() + 2 * model.heads().kv_width();
  const float* const k = qkv + sequences.first_token * stride + model.heads().query_width();
  const std::span<const std::int32_t> rows = kv.residual_rows();  // in the order of the batch: prefills, then decodes
  const int first_row = phase == Phase::prefill ? 0 : inputs.attention(Phase::prefill).num_seqs;
  return {.cache = kv.layer(layer),
          .new_kv = {.k = k,
                     .v = k + model.heads().kv_width(),
                     .stride = stride,
                     .residual_rows = rows.empty() ? nullptr : rows.data() + first_row},
          .block_tables = sequences.block_tables.data(),
          .max_blocks_per_seq = sequences.max_blocks_per_seq,
          .query_start_loc = sequences.query_start_loc.data(),
          .context_lens = sequences.context_lens.data(),
          .num_seqs = sequences.num_seqs};
}

}  // namespace dculab::engine
