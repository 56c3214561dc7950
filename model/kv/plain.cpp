// Formats whose tokens are written to the cache one by one, and read from there.
#include "model/kv/kv_plans.hpp"

namespace dculab {
namespace {

// K and V of the new tokens, to where attention will find them, one head of one token at a time.
void add_plain_writes(Op& op, const StepSizes& sizes, const Batch& /*batch*/) {
  const Heads& heads = sizes.heads();
  const Dtype dtype = sizes.options.kv_cache_dtype;
  const auto written = static_cast<double>(sizes.tokens - sizes.unwritten);
  if (written > 0)
    op.add({OperandRole::kv_write,
            kv_storage(dtype, 2.0 * written * heads.kv_width(), heads.head_dim, heads.num_key_value_heads),
            storage(dtype, heads.head_dim)});
}

KvBytes plain_attention_bytes(const Gqa& attention, const EngineOptions& options, const Batch& /*batch*/,
                              Phase /*phase*/, const AttentionWork& work) {
  const double values = 2.0 * attention.heads.kv_width() * work.context_tokens;
  return {.read = kv_storage(options.kv_cache_dtype, values, attention.heads.head_dim,
                             attention.heads.num_key_value_heads)};
}

}  // namespace

const KvFormatPlan kPlainKvPlan{.add_cache_writes = add_plain_writes, .attention_bytes = plain_attention_bytes};

}  // namespace dculab
