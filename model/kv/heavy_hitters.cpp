// H2O's pass in one layer over the keys of all sequences: what each cached token gets of the new tokens' attention is
// added to a sum for each KV head. One workgroup for each sequence and KV head.
#include <algorithm>

#include "model/attention_work.hpp"
#include "model/kv/kv_plans.hpp"

namespace dculab {
namespace {

[[nodiscard]] Op plan_attention_scores(const Gqa& attention, const EngineOptions& options, const Batch& batch) {
  Op op;
  op.kind = OpKind::attention_scores;
  op.name = "attention_scores";
  op.input = Buffer::qkv;
  op.activation_dtype = options.activation_dtype;
  const AttentionWork work = attention_work(attention, options, batch.sequences);
  const double row = static_cast<double>(work.head_dim) * work.num_kv_heads;
  const double run_tokens = std::min<double>(work.block_size, work.context_tokens);
  const double query_values = work.query_tokens * attention.heads.query_width();
  const Bytes sums = storage(Dtype::f32, work.context_tokens * work.num_kv_heads);
  op.m = static_cast<std::int64_t>(work.query_tokens);
  op.n = attention.heads.query_width();
  op.flops = FlopCount(2.0 * work.score_pairs * attention.heads.query_width());
  op.add({OperandRole::kv_read, kv_storage(work.kv_dtype, row * work.context_tokens, work.head_dim),
          storage(work.kv_dtype, run_tokens * work.head_dim)});
  op.add({OperandRole::activation, storage(options.activation_dtype, query_values) + sums,
          storage(options.activation_dtype, work.head_dim)});
  op.add({OperandRole::block_table, Bytes(kBlockIdBytes * work.kv_blocks), Bytes(kBlockIdBytes)});
  op.add({OperandRole::output, sums, storage(Dtype::f32, run_tokens)});
  op.attention = work;
  return op;
}

void plan_scores(StepPlan& plan, const StepSizes& sizes) {
  plan.ops.push_back(of_layers(plan_attention_scores(sizes.layer().gqa(), sizes.options, plan.batch), sizes));
}

}  // namespace

const KvPolicyPlan kHeavyHittersPlan{.after_attention = plan_scores};

}  // namespace dculab
