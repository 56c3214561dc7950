#include "core/attention_work.hpp"

#include <algorithm>

#include "core/kivi.hpp"

namespace dculab {
namespace {

constexpr double kBlockIdBytes = 4;
constexpr int kKvTileTokens = 64;  // kernels/cpu/attention_tile-inl.hpp: tiles begin at multiples of it

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

// The first KV token that a kernel loads for the query token at `position`: the first that it sees, rounded down to a
// whole tile.
[[nodiscard]] int first_loaded(const ModelShape& model, int position) {
  if (model.sliding_window == 0) return 0;
  return std::max(0, position + 1 - model.sliding_window) / kKvTileTokens * kKvTileTokens;
}

// Blocks that hold tokens [begin, end).
[[nodiscard]] int blocks_of(int begin, int end, int block_size) {
  return ceil_divide(end, block_size) - begin / block_size;
}

// One query token: partitions, which begin at multiples of partition_tokens, share the context from `begin` on.
[[nodiscard]] Walk decode_walk(int begin, int context, int block_size, int partition_tokens) {
  Walk walk;
  walk.tokens = context - begin;
  const int first = partition_tokens == 0 ? 0 : begin / partition_tokens;
  walk.partitions = partition_tokens == 0 ? 1 : ceil_divide(context, partition_tokens) - first;
  walk.workgroups = walk.partitions;
  if (walk.partitions == 1) {
    walk.longest = context - begin;
    walk.lookups = blocks_of(begin, context, block_size);
    return walk;
  }
  const int first_end = (first + 1) * partition_tokens;
  const int last_begin = (first + walk.partitions - 1) * partition_tokens;
  walk.longest = walk.partitions > 2 ? partition_tokens : std::max(first_end - begin, context - last_begin);
  // A partition that starts inside a block follows that block's entry again.
  walk.lookups = blocks_of(begin, first_end, block_size) +
                 static_cast<double>(walk.partitions - 2) * ceil_divide(partition_tokens, block_size) +
                 ceil_divide(context - last_begin, block_size);
  return walk;
}

// Query tiles walk the context from what their first token sees up to their own last token: causal.
[[nodiscard]] Walk prefill_walk(const ModelShape& model, const SequenceSlice& sequence, int block_size,
                                int tile_tokens) {
  Walk walk;
  for (int first = 0; first < sequence.num_new_tokens; first += tile_tokens) {
    const int begin = first_loaded(model, sequence.num_computed_tokens + first);
    const int end = sequence.num_computed_tokens + std::min(first + tile_tokens, sequence.num_new_tokens);
    walk.tokens += end - begin;
    walk.lookups += blocks_of(begin, end, block_size);
    walk.workgroups += 1;
    walk.longest = std::max<double>(walk.longest, end - begin);
  }
  return walk;
}

// (query token, KV token) pairs: query i sees the tokens up to its own, at most a window of them.
[[nodiscard]] double score_pairs(const ModelShape& model, const SequenceSlice& sequence) {
  const double query = sequence.num_new_tokens;
  const double all = query * sequence.num_computed_tokens + query * (query + 1) / 2;
  if (model.sliding_window == 0) return all;
  // Those beyond the window of the query at `position`: position + 1 - window, where that is positive.
  const double last = sequence.context_tokens() - model.sliding_window;
  if (last <= 0) return all;
  const double first = std::max(1, sequence.num_computed_tokens + 1 - model.sliding_window);
  return all - (last - first + 1) * (first + last) / 2;
}

// The walks of one sequence after another. A long prefill has many tiles, and sequences of a batch are often alike.
class Walks {
 public:
  Walks(const ModelShape& model, int block_size, const KernelTiling& tiling)
      : model_(model), block_size_(block_size), tiling_(tiling) {}

  const Walk& of(const SequenceSlice& sequence) {
    if (last_.phase != sequence.phase || last_.num_computed_tokens != sequence.num_computed_tokens ||
        last_.num_new_tokens != sequence.num_new_tokens)
      walk_ = sequence.phase == Phase::decode
                  ? decode_walk(first_loaded(model_, sequence.num_computed_tokens), sequence.context_tokens(),
                                block_size_, tiling_.partition_tokens)
                  : prefill_walk(model_, sequence, block_size_, tiling_.prefill_query_tokens);
    last_ = sequence;
    return walk_;
  }

 private:
  const ModelShape& model_;
  int block_size_;
  const KernelTiling& tiling_;
  SequenceSlice last_{.num_new_tokens = 0};  // none yet: each has a new token
  Walk walk_;
};

// Adds one sequence to `work`; returns the KV tokens walked per head group.
double add_sequence(AttentionWork& work, const ModelShape& model, const SequenceSlice& sequence, const Walk& walk) {
  const int context = sequence.context_tokens();
  const int begin = first_loaded(model, sequence.num_computed_tokens);
  const double head_groups = static_cast<double>(work.num_kv_heads) * head_groups_per_kv_head(work);
  const int blocks = blocks_of(begin, context, work.block_size);
  work.num_sequences += 1;
  work.query_tokens += sequence.num_new_tokens;
  work.context_tokens += context - begin;
  work.score_pairs += score_pairs(model, sequence);
  work.kv_blocks += blocks;
  work.padded_tokens += static_cast<double>(blocks) * work.block_size;
  work.workgroups += head_groups * walk.workgroups;
  work.block_lookups += head_groups * walk.lookups;
  work.longest_walk_tokens = std::max(work.longest_walk_tokens, walk.longest);
  if (walk.partitions > 1) work.partitions_combined += walk.partitions;
  return walk.tokens;
}

// Distinct bytes of K and V that attention moves in one layer.
struct KvBytes {
  Bytes read;
  Bytes read_as_activations;  // kivi4, kivi2: of the new tokens
  Bytes written;              // kivi4, kivi2: the residual
};

[[nodiscard]] KvBytes kv_bytes(const ModelShape& model, const EngineOptions& options, const Batch& batch, Phase phase,
                               double context_tokens) {
  const Dtype dtype = options.kv_cache_dtype;
  const double row = 2.0 * model.kv_width();
  if (!is_kivi(dtype)) return {kv_storage(dtype, row * context_tokens, model.head_dim), {}, {}};
  KvBytes bytes;
  for (const SequenceSlice& sequence : batch.sequences) {
    if (sequence.phase != phase) continue;
    const int computed = sequence.num_computed_tokens;
    const KiviTraffic tokens =
        kivi_traffic(computed, sequence.context_tokens(), first_loaded(model, computed), options.kv_residual_tokens);
    bytes.read += kv_storage(dtype, row * tokens.quantized_read, model.head_dim) +
                  storage(Dtype::f16, row * tokens.residual_read);
    bytes.read_as_activations += storage(options.activation_dtype, row * sequence.num_new_tokens);
    bytes.written += storage(Dtype::f16, row * tokens.residual_written);
  }
  return bytes;
}

}  // namespace

Op plan_attention(const ModelShape& model, const EngineOptions& options, const Batch& batch, Phase phase) {
  Op op;
  op.kind = phase == Phase::decode ? OpKind::attention_decode : OpKind::attention_prefill;
  op.name = phase == Phase::decode ? "attention_decode" : "attention_prefill";
  op.count = model.num_hidden_layers;
  op.activation_dtype = options.activation_dtype;
  AttentionWork work = empty_work(model, options);
  Walks walks(model, work.block_size, options.tiling);
  double walked_tokens = 0;
  for (const SequenceSlice& sequence : batch.sequences)
    if (sequence.phase == phase) walked_tokens += add_sequence(work, model, sequence, walks.of(sequence));

  const double sharing = head_groups_per_kv_head(work);
  const KvBytes kv = kv_bytes(model, options, batch, phase, work.context_tokens);
  const double run_tokens = std::min<double>(work.block_size, work.context_tokens);
  const double query_values = work.query_tokens * model.query_width();
  const double partial_values = work.partitions_combined * model.query_width();
  const double kv_requests = work.context_tokens > 0 ? sharing * walked_tokens / work.context_tokens : 1;
  op.m = static_cast<std::int64_t>(work.query_tokens);
  op.n = model.query_width();
  // Two products; ALiBi adds a multiple of the distance to each score.
  const double bias_flops = model.position == PositionKind::alibi ? 2.0 * model.num_attention_heads : 0.0;
  op.flops = FlopCount(work.score_pairs * (4.0 * model.query_width() + bias_flops));
  op.add({OperandRole::kv_read, kv.read, kv_requests, storage(work.kv_dtype, run_tokens * work.head_dim)});
  op.add({OperandRole::activation, storage(options.activation_dtype, query_values) + kv.read_as_activations, 1,
          storage(options.activation_dtype, work.head_dim)});
  op.add({OperandRole::block_table, Bytes(kBlockIdBytes * work.kv_blocks),
          work.kv_blocks > 0 ? std::max(1.0, work.block_lookups / work.kv_blocks) : 1, Bytes(kBlockIdBytes)});
  // Partial results of split contexts are F32, written once and read once by the combining pass.
  op.add({OperandRole::output,
          storage(options.activation_dtype, query_values) + storage(Dtype::f32, 2 * partial_values), 1,
          storage(options.activation_dtype, work.head_dim)});
  if (kv.written > Bytes()) op.add({OperandRole::kv_write, kv.written, 1, storage(Dtype::f16, work.head_dim)});
  op.attention = work;
  return op;
}

Op plan_attention_scores(const ModelShape& model, const EngineOptions& options, const Batch& batch) {
  Op op;
  op.kind = OpKind::attention_scores;
  op.name = "attention_scores";
  op.count = model.num_hidden_layers;
  op.activation_dtype = options.activation_dtype;
  op.kv_retention = options.kv_retention;
  AttentionWork work = empty_work(model, options);
  work.heads_per_workgroup = model.group_size();
  // Each new token walks what it sees, and the group walks it together.
  const KernelTiling tiling{.prefill_query_tokens = 1, .partition_tokens = 0};
  Walks walks(model, work.block_size, tiling);
  double walked_tokens = 0, longest = 0;
  for (const SequenceSlice& sequence : batch.sequences) {
    const double walked = add_sequence(work, model, sequence, walks.of(sequence));
    walked_tokens += walked;
    longest = std::max(longest, walked);
  }
  work.longest_walk_tokens = longest;
  work.workgroups = static_cast<double>(work.num_sequences) * work.num_kv_heads;
  const double row = static_cast<double>(work.head_dim) * work.num_kv_heads;
  const double run_tokens = std::min<double>(work.block_size, work.context_tokens);
  const double query_values = work.query_tokens * model.query_width();
  const Bytes sums = storage(Dtype::f32, work.context_tokens * work.num_kv_heads);
  op.m = static_cast<std::int64_t>(work.query_tokens);
  op.n = model.query_width();
  op.flops = FlopCount(2.0 * work.score_pairs * model.query_width());
  op.add({OperandRole::kv_read, kv_storage(work.kv_dtype, row * work.context_tokens, work.head_dim),
          walked_tokens / work.context_tokens, storage(work.kv_dtype, run_tokens * work.head_dim)});
  op.add({OperandRole::activation, storage(options.activation_dtype, query_values) + sums, 1,
          storage(options.activation_dtype, work.head_dim)});
  op.add({OperandRole::block_table, Bytes(kBlockIdBytes * work.kv_blocks),
          std::max(1.0, work.block_lookups / work.kv_blocks), Bytes(kBlockIdBytes)});
  op.add({OperandRole::output, sums, 1, storage(Dtype::f32, run_tokens)});
  op.attention = work;
  return op;
}

}  // namespace dculab
