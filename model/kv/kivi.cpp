// kivi4 and kivi2: whole groups of tokens are quantized into the blocks, the newest tokens stay in F16 beside them.
#include "core/kv/kivi.hpp"
#include "model/attention_work.hpp"
#include "model/kv/kv_plans.hpp"

namespace dculab {
namespace {

// KIVI: they are rounded to F16 where they are, and whole groups are quantized into the blocks.
void add_kivi_groups(Op& op, const StepSizes& sizes, const Batch& batch) {
  const Heads& heads = sizes.heads();
  const Dtype dtype = sizes.options.kv_cache_dtype;
  const double row = 2.0 * heads.kv_width();
  double grouped = 0, from_residual = 0;
  for (const SequenceSlice& sequence : batch.sequences) {
    const KiviTraffic tokens =
        kivi_traffic(sequence.num_computed_tokens, sequence.context_tokens(), 0, sizes.options.kv_residual_tokens);
    grouped += tokens.grouped;
    from_residual += tokens.residual_grouped;
  }
  op.add({OperandRole::output, activations(sizes, row * static_cast<double>(sizes.tokens)),
          activations(sizes, heads.head_dim)});
  if (grouped > 0)
    op.add({OperandRole::kv_write, kv_storage(dtype, row * grouped, heads.head_dim), storage(dtype, heads.head_dim)});
  if (from_residual > 0)
    op.add({OperandRole::kv_read, storage(Dtype::f16, row * from_residual), storage(Dtype::f16, heads.head_dim)});
}

KvBytes kivi_attention_bytes(const Gqa& attention, const EngineOptions& options, const Batch& batch, Phase phase,
                             const AttentionWork& work) {
  const Dtype dtype = options.kv_cache_dtype;
  const double row = 2.0 * attention.heads.kv_width();
  KvBytes bytes;
  for (const SequenceSlice& sequence : batch.sequences) {
    if (sequence.phase != phase) continue;
    const int computed = sequence.num_computed_tokens;
    const KiviTraffic tokens = kivi_traffic(computed, sequence.context_tokens(), first_loaded_token(work, computed),
                                            options.kv_residual_tokens);
    bytes.read += kv_storage(dtype, row * tokens.quantized_read, attention.heads.head_dim) +
                  storage(Dtype::f16, row * tokens.residual_read);
    bytes.read_as_activations += storage(options.activation_dtype, row * sequence.num_new_tokens);
    bytes.written += storage(Dtype::f16, row * tokens.residual_written);
  }
  return bytes;
}

}  // namespace

const KvFormatPlan kKiviPlan{.add_cache_writes = add_kivi_groups, .attention_bytes = kivi_attention_bytes};

}  // namespace dculab
