#include "model/attention_work.hpp"

#include <algorithm>
#include <cmath>

#include "core/kv/table.hpp"
#include "model/kv/kv_plans.hpp"

namespace dculab {
namespace {

[[nodiscard]] AttentionWork empty_work(const Gqa& attention, const EngineOptions& options) {
  AttentionWork work;
  work.num_query_heads = attention.heads.num_attention_heads;
  work.num_kv_heads = attention.heads.num_key_value_heads;
  work.head_dim = work.value_dim = attention.heads.head_dim;
  work.block_size = options.block_size;
  work.sliding_window = attention.sliding_window;
  work.in_chunks = attention.in_chunks;
  work.kv_dtype = options.kv_cache_dtype;
  work.has_alibi = attention.position.kind == PositionKind::alibi;
  work.has_soft_cap = attention.logit_soft_cap > 0;
  return work;
}

// Of the first `tokens` tokens of a sequence, each with those of its chunk up to its own.
[[nodiscard]] double pairs_in_chunks(double chunk, double tokens) {
  const double whole = std::floor(tokens / chunk), rest = tokens - whole * chunk;
  return whole * chunk * (chunk + 1) / 2 + rest * (rest + 1) / 2;
}

// (query token, KV token) pairs: query i sees the tokens up to its own, at most a window of them.
[[nodiscard]] double score_pairs(int sliding_window, bool in_chunks, const SequenceSlice& sequence) {
  const double query = sequence.num_new_tokens;
  const double all = query * sequence.num_computed_tokens + query * (query + 1) / 2;
  if (sliding_window == 0) return all;
  if (in_chunks)
    return pairs_in_chunks(sliding_window, sequence.context_tokens()) -
           pairs_in_chunks(sliding_window, sequence.num_computed_tokens);
  // Those beyond the window of the query at `position`: position + 1 - window, where that is positive.
  const double last = sequence.context_tokens() - sliding_window;
  if (last <= 0) return all;
  const double first = std::max(1, sequence.num_computed_tokens + 1 - sliding_window);
  return all - (last - first + 1) * (first + last) / 2;
}

// A decode may load a part of what it could see: as if that lay in a row.
void add_sequence(AttentionWork& work, const SequenceSlice& sequence, const KvRetention& retention = {}) {
  const int all = sequence.context_tokens();
  const bool decodes = sequence.phase == Phase::decode;
  const int context = decodes ? kv_tokens_loaded(retention, work.block_size, all) : all;
  const int begin = first_loaded_token(work, sequence.num_computed_tokens);
  const int blocks = blocks_of(begin, context, work.block_size);
  work.num_sequences += 1;
  work.query_tokens += sequence.num_new_tokens;
  work.context_tokens += context - begin;
  work.score_pairs += score_pairs(work.sliding_window, work.in_chunks, sequence) - (all - context);
  work.kv_blocks += blocks;
  work.padded_tokens += static_cast<double>(blocks) * work.block_size;
}

// The same of compressed attention. What a query has chosen is another's too: all that it could see, if there are
// enough of them.
void add_sequence_of_entries(AttentionWork& work, const SequenceSlice& sequence) {
  const int context = sequence.context_tokens(), computed = sequence.num_computed_tokens;
  const double pairs = entry_pairs(work.compress_ratio, work.most_entries, context) -
                       entry_pairs(work.compress_ratio, work.most_entries, computed);
  const int entries = static_cast<int>(std::min<double>(context / work.compress_ratio, pairs));
  const int tokens = work.sliding_window == 0 ? 0 : context - first_loaded_token(work.sliding_window, computed);
  const int blocks = blocks_of(0, entries, work.block_size) + blocks_of(0, tokens, work.block_size);
  work.num_sequences += 1;
  work.query_tokens += sequence.num_new_tokens;
  work.context_tokens += entries + tokens;
  work.score_pairs += pairs;
  if (work.sliding_window > 0) work.score_pairs += score_pairs(work.sliding_window, false, sequence);
  work.kv_blocks += blocks;
  work.padded_tokens += static_cast<double>(blocks) * work.block_size;
}

}  // namespace

int first_loaded_token(int sliding_window, int position) {
  if (sliding_window == 0) return 0;
  return std::max(0, position + 1 - sliding_window) / kKvTileTokens * kKvTileTokens;
}

int first_loaded_token(const AttentionWork& work, int position) {
  if (!work.in_chunks) return first_loaded_token(work.sliding_window, position);
  return position / work.sliding_window * work.sliding_window / kKvTileTokens * kKvTileTokens;
}

LoadedTokens loaded_tokens(const AttentionWork& work, int first, int last) {
  if (work.compress_ratio == 0) return {first_loaded_token(work, first), last + 1};
  const int entries = (last + 1) / work.compress_ratio;
  const int chosen = work.most_entries == 0 ? entries : std::min(entries, work.most_entries);
  return {0, chosen + (work.sliding_window == 0 ? 0 : last + 1 - first_loaded_token(work.sliding_window, first))};
}

double entry_pairs(int compress_ratio, int most, double tokens) {
  if (compress_ratio == 0) return 0;
  const double ratio = compress_ratio;
  const double all = most == 0 ? tokens : std::min(tokens, most * ratio);  // these see what there is, the rest `most`
  const double whole = std::floor(all / ratio);
  return ratio * whole * (whole - 1) / 2 + whole * (all - whole * ratio + 1) + most * (tokens - all);
}

AttentionWork attention_work(const Gqa& attention, const EngineOptions& options,
                             std::span<const SequenceSlice> sequences) {
  AttentionWork work = empty_work(attention, options);
  for (const SequenceSlice& sequence : sequences) add_sequence(work, sequence);
  return work;
}

int blocks_of(int begin, int end, int block_size) { return (end + block_size - 1) / block_size - begin / block_size; }

TouchedBlocks touched_blocks(const Batch& batch, int block_size) {
  TouchedBlocks touched;
  for (const SequenceSlice& sequence : batch.sequences) {
    const int begin = sequence.num_computed_tokens + sequence.num_unwritten_tokens, end = sequence.context_tokens();
    if (begin == end) continue;
    touched.all += begin + 1 == end ? 1 : blocks_of(begin, end, block_size);
    touched.widened += begin % block_size == 0 ? 0 : 1;
  }
  return touched;
}

Op plan_attention(const Gqa& attention, const EngineOptions& options, const Batch& batch, Phase phase) {
  Op op;
  op.kind = phase == Phase::decode ? OpKind::attention_decode : OpKind::attention_prefill;
  op.name = phase == Phase::decode ? "attention_decode" : "attention_prefill";
  op.input = Buffer::qkv;
  op.output = Buffer::attention;
  op.activation_dtype = options.activation_dtype;
  AttentionWork work = empty_work(attention, options);
  for (const SequenceSlice& sequence : batch.sequences)
    if (sequence.phase == phase) add_sequence(work, sequence, options.kv_retention);

  const KvBytes kv = kv_format_plan(work.kv_dtype).attention_bytes(attention, options, batch, phase, work);
  const double run_tokens = std::min<double>(work.block_size, work.context_tokens);
  const double query_values = work.query_tokens * attention.heads.query_width();
  op.m = static_cast<std::int64_t>(work.query_tokens);
  op.n = attention.heads.query_width();
  // Two products; ALiBi adds a multiple of the distance to each score, a soft cap is a tanh of about 8 FLOP.
  const double bias_flops =
      attention.position.kind == PositionKind::alibi ? 2.0 * attention.heads.num_attention_heads : 0.0;
  const double cap_flops = work.has_soft_cap ? 8.0 * attention.heads.num_attention_heads : 0.0;
  op.flops = FlopCount(work.score_pairs * (4.0 * attention.heads.query_width() + bias_flops + cap_flops));
  op.add({OperandRole::kv_read, kv.read, storage(work.kv_dtype, run_tokens * work.head_dim)});
  op.add({OperandRole::activation, storage(options.activation_dtype, query_values) + kv.read_as_activations,
          storage(options.activation_dtype, work.head_dim)});
  const bool is_chosen = phase == Phase::decode && kv_policy(options.kv_retention.policy).has_budget;
  const double tables = is_chosen ? work.num_kv_heads : 1;  // each KV head has a list of its own
  op.add({OperandRole::block_table, Bytes(kBlockIdBytes * work.kv_blocks * tables), Bytes(kBlockIdBytes)});
  op.add({OperandRole::output, storage(options.activation_dtype, query_values),
          storage(options.activation_dtype, work.head_dim)});
  if (kv.written > Bytes()) op.add({OperandRole::kv_write, kv.written, storage(Dtype::f16, work.head_dim)});
  op.attention = work;
  return op;
}

Op plan_attention(const Mla& attention, const EngineOptions& options, const Batch& batch, Phase phase,
                  LatentForm form) {
  const bool absorbs = form == LatentForm::absorb;
  Op op;
  op.kind = phase == Phase::decode ? OpKind::attention_decode : OpKind::attention_prefill;
  op.name = phase == Phase::decode ? "attention_decode" : "attention_prefill";
  op.input = absorbs ? Buffer::latent_queries : Buffer::queries;
  op.output = absorbs ? Buffer::latent_outputs : Buffer::attention;
  op.activation_dtype = options.activation_dtype;
  AttentionWork work{.num_query_heads = attention.num_attention_heads,
                     .num_kv_heads = absorbs ? 1 : attention.num_attention_heads,
                     .head_dim = absorbs ? attention.latent_width() : attention.qk_head_dim(),
                     .value_dim = absorbs ? attention.kv_lora_rank : attention.v_head_dim,
                     .block_size = options.block_size,
                     .kv_dtype = absorbs ? options.kv_cache_dtype : options.activation_dtype,
                     .is_latent = absorbs,
                     .is_paged = absorbs};
  for (const SequenceSlice& sequence : batch.sequences)
    if (sequence.phase == phase) add_sequence(work, sequence);
  const double heads = work.num_query_heads;
  const auto read = static_cast<double>(work.num_kv_heads) * work.loaded_values() * work.context_tokens;
  const double run_tokens = std::min<double>(work.block_size, work.context_tokens);
  op.m = static_cast<std::int64_t>(work.query_tokens);
  op.n = static_cast<std::int64_t>(heads) * work.value_dim;
  op.flops = FlopCount(2 * work.score_pairs * heads * (work.head_dim + work.value_dim));
  op.add({OperandRole::kv_read, kv_storage(work.kv_dtype, read, work.head_dim),
          storage(work.kv_dtype, (absorbs ? run_tokens : 1) * work.head_dim)});
  op.add({OperandRole::activation, storage(options.activation_dtype, work.query_tokens * heads * work.head_dim),
          storage(options.activation_dtype, work.head_dim)});
  if (absorbs) op.add({OperandRole::block_table, Bytes(kBlockIdBytes * work.kv_blocks), Bytes(kBlockIdBytes)});
  op.add({OperandRole::output, storage(options.activation_dtype, work.query_tokens * heads * work.value_dim),
          storage(options.activation_dtype, work.value_dim)});
  op.attention = work;
  return op;
}

Op plan_attention(const CompressedAttention& attention, const EngineOptions& options, const Batch& batch, Phase phase) {
  Op op;
  op.kind = phase == Phase::decode ? OpKind::attention_decode : OpKind::attention_prefill;
  op.name = phase == Phase::decode ? "attention_decode" : "attention_prefill";
  op.input = Buffer::queries;
  op.output = Buffer::attention;
  op.activation_dtype = options.activation_dtype;
  AttentionWork work{.num_query_heads = attention.num_attention_heads,
                     .num_kv_heads = 1,
                     .head_dim = attention.head_dim,
                     .value_dim = attention.head_dim,
                     .block_size = options.block_size,
                     .sliding_window = attention.sliding_window,
                     .compress_ratio = attention.compress_ratio,
                     .most_entries = attention.has_indexer() ? attention.index_topk : 0,
                     .kv_dtype = options.kv_cache_dtype,
                     .is_latent = true};
  for (const SequenceSlice& sequence : batch.sequences)
    if (sequence.phase == phase)
      work.compress_ratio == 0 ? add_sequence(work, sequence) : add_sequence_of_entries(work, sequence);
  const double query_values = work.query_tokens * attention.query_width();
  const double run_tokens = std::min<double>(work.most_entries > 0 ? 1 : work.block_size, work.context_tokens);
  op.m = static_cast<std::int64_t>(work.query_tokens);
  op.n = attention.query_width();
  op.flops = FlopCount(4 * work.score_pairs * attention.query_width());
  op.add({OperandRole::kv_read, kv_storage(work.kv_dtype, work.context_tokens * work.head_dim, work.head_dim),
          storage(work.kv_dtype, run_tokens * work.head_dim)});
  op.add({OperandRole::activation, storage(options.activation_dtype, query_values),
          storage(options.activation_dtype, work.head_dim)});
  op.add({OperandRole::block_table, Bytes(kBlockIdBytes * work.kv_blocks), Bytes(kBlockIdBytes)});
  op.add({OperandRole::output, storage(options.activation_dtype, query_values),
          storage(options.activation_dtype, work.head_dim)});
  op.attention = work;
  return op;
}

Op plan_index_scores(const CompressedAttention& attention, const EngineOptions& options, const Batch& batch) {
  Op op;
  op.kind = OpKind::index_scores;
  op.name = "index_scores";
  op.input = Buffer::queries;
  op.activation_dtype = options.activation_dtype;
  AttentionWork work{.num_query_heads = attention.index_n_heads,
                     .num_kv_heads = 1,
                     .head_dim = attention.index_head_dim,
                     .block_size = options.block_size,
                     .compress_ratio = attention.compress_ratio,
                     .kv_dtype = options.kv_cache_dtype};
  for (const SequenceSlice& sequence : batch.sequences) add_sequence_of_entries(work, sequence);
  const double heads = work.num_query_heads;
  const double run_tokens = std::min<double>(work.block_size, work.context_tokens);
  op.m = static_cast<std::int64_t>(work.query_tokens);
  op.n = attention.index_query_width();
  op.flops = FlopCount(work.score_pairs * heads * (2.0 * work.head_dim + 3));  // cut off, weighted, added
  op.add({OperandRole::kv_read, kv_storage(work.kv_dtype, work.context_tokens * work.head_dim, work.head_dim),
          storage(work.kv_dtype, run_tokens * work.head_dim)});
  op.add({OperandRole::activation, storage(options.activation_dtype, work.query_tokens * heads * (work.head_dim + 1.0)),
          storage(options.activation_dtype, work.head_dim)});
  op.add({OperandRole::block_table, Bytes(kBlockIdBytes * work.kv_blocks), Bytes(kBlockIdBytes)});
  op.add({OperandRole::output, storage(Dtype::f32, work.score_pairs), storage(Dtype::f32, run_tokens)});
  op.attention = work;
  return op;
}

}  // namespace dculab
