#include "core/attention_work.hpp"

#include <algorithm>

namespace dculab {
namespace {

constexpr double kBlockIdBytes = 4;

[[nodiscard]] int ceil_divide(int a, int b) { return (a + b - 1) / b; }

[[nodiscard]] AttentionWork empty_work(const ModelShape& model, const EngineOptions& options) {
  AttentionWork work;
  work.num_query_heads = model.num_attention_heads;
  work.num_kv_heads = model.num_key_value_heads;
  work.head_dim = model.head_dim;
  work.block_size = options.block_size;
  work.kv_dtype = options.kv_cache_dtype;
  const int wanted = options.tiling.query_heads_per_workgroup;
  work.heads_per_workgroup = wanted == 0 ? model.group_size() : std::min(wanted, model.group_size());
  return work;
}

// Workgroups that walk the same KV tokens of one KV head, for different query heads.
[[nodiscard]] int head_groups_per_kv_head(const AttentionWork& work) {
  return ceil_divide(work.num_query_heads / work.num_kv_heads, work.heads_per_workgroup);
}

// What one sequence adds, walking its KV once per head group of each KV head.
struct Walk {
  double tokens = 0;      // KV tokens walked, per head group and KV head
  double lookups = 0;     // block table entries followed, likewise
  double workgroups = 0;  // likewise
  double longest = 0;     // tokens walked by the busiest workgroup
  int partitions = 1;
};

// One query token: partitions share the context between them.
[[nodiscard]] Walk decode_walk(int context, int block_size, int partition_tokens) {
  const int partitions = partition_tokens == 0 ? 1 : ceil_divide(context, partition_tokens);
  Walk walk;
  walk.tokens = context;
  walk.workgroups = partitions;
  walk.partitions = partitions;
  walk.longest = partitions == 1 ? context : partition_tokens;
  // A partition that starts inside a block follows that block's entry again.
  const int lookups_per_partition =
      partitions == 1 ? ceil_divide(context, block_size) : ceil_divide(partition_tokens, block_size);
  walk.lookups = static_cast<double>(partitions - 1) * lookups_per_partition +
                 ceil_divide(context - (partitions - 1) * partition_tokens, block_size);
  return walk;
}

// Query tiles walk the context up to their own last token: causal.
[[nodiscard]] Walk prefill_walk(const SequenceSlice& sequence, int block_size, int tile_tokens) {
  Walk walk;
  for (int first = 0; first < sequence.num_new_tokens; first += tile_tokens) {
    const int last = std::min(first + tile_tokens, sequence.num_new_tokens);
    const int walked = sequence.num_computed_tokens + last;
    walk.tokens += walked;
    walk.lookups += ceil_divide(walked, block_size);
    walk.workgroups += 1;
    walk.longest = walked;
  }
  return walk;
}

// Adds one sequence to `work`; returns the KV tokens walked per head group.
double add_sequence(AttentionWork& work, const SequenceSlice& sequence, const KernelTiling& tiling) {
  const double query = sequence.num_new_tokens;
  const int context = sequence.context_tokens();
  const Walk walk = sequence.phase == Phase::decode
                        ? decode_walk(context, work.block_size, tiling.partition_tokens)
                        : prefill_walk(sequence, work.block_size, tiling.prefill_query_tokens);
  const double head_groups = static_cast<double>(work.num_kv_heads) * head_groups_per_kv_head(work);
  const int blocks = ceil_divide(context, work.block_size);
  work.num_sequences += 1;
  work.query_tokens += query;
  work.context_tokens += context;
  work.score_pairs += query * sequence.num_computed_tokens + query * (query + 1) / 2;
  work.kv_blocks += blocks;
  work.padded_tokens += static_cast<double>(blocks) * work.block_size;
  work.workgroups += head_groups * walk.workgroups;
  work.block_lookups += head_groups * walk.lookups;
  work.longest_walk_tokens = std::max(work.longest_walk_tokens, walk.longest);
  if (walk.partitions > 1) work.partitions_combined += walk.partitions;
  return walk.tokens;
}

}  // namespace

Op plan_attention(const ModelShape& model, const EngineOptions& options, const Batch& batch, Phase phase) {
  Op op;
  op.kind = phase == Phase::decode ? OpKind::attention_decode : OpKind::attention_prefill;
  op.name = phase == Phase::decode ? "attention_decode" : "attention_prefill";
  op.count = model.num_hidden_layers;
  op.activation_dtype = options.activation_dtype;
  AttentionWork work = empty_work(model, options);
  double walked_tokens = 0;
  for (const SequenceSlice& sequence : batch.sequences)
    if (sequence.phase == phase) walked_tokens += add_sequence(work, sequence, options.tiling);

  const double sharing = head_groups_per_kv_head(work);
  const double row = static_cast<double>(work.head_dim) * work.num_kv_heads;
  const double run_tokens = std::min<double>(work.block_size, work.context_tokens);
  const double query_values = work.query_tokens * model.query_width();
  const double partial_values = work.partitions_combined * static_cast<double>(model.query_width());
  const double kv_requests = work.context_tokens > 0 ? sharing * walked_tokens / work.context_tokens : 1;
  op.m = static_cast<std::int64_t>(work.query_tokens);
  op.n = model.query_width();
  op.flops = FlopCount(4.0 * work.score_pairs * model.query_width());
  op.add({OperandRole::kv_read, storage(work.kv_dtype, 2.0 * row * work.context_tokens), kv_requests,
          storage(work.kv_dtype, run_tokens * work.head_dim)});
  op.add({OperandRole::activation, storage(options.activation_dtype, query_values), 1,
          storage(options.activation_dtype, work.head_dim)});
  op.add({OperandRole::block_table, Bytes(kBlockIdBytes * work.kv_blocks),
          work.kv_blocks > 0 ? std::max(1.0, work.block_lookups / work.kv_blocks) : 1, Bytes(kBlockIdBytes)});
  // Partial results of split contexts are F32, written once and read once by the combining pass.
  op.add({OperandRole::output,
          storage(options.activation_dtype, query_values) + storage(Dtype::f32, 2 * partial_values), 1,
          storage(options.activation_dtype, work.head_dim)});
  op.attention = work;
  return op;
}

}  // namespace dculab
