// Ops of attention over a window of tokens and compressed entries.
// Source: transformers, models/deepseek_v4/modeling_deepseek_v4.py.
#include <algorithm>

#include "model/attention_work.hpp"
#include "model/decoder_ops.hpp"

namespace dculab {
namespace {

constexpr double kEntryNumberBytes = 4;  // of a chosen entry

// Of a step, over its sequences: entries that its tokens complete, and tokens that entries need which are not.
struct EntryTokens {
  double completed = 0, kept = 0;
};

[[nodiscard]] EntryTokens entry_tokens(const CompressedAttention& attention, const Batch& batch) {
  const int ratio = attention.compress_ratio;
  EntryTokens tokens;
  for (const SequenceSlice& sequence : batch.sequences) {
    const int context = sequence.context_tokens();
    tokens.completed += context / ratio - sequence.num_computed_tokens / ratio;
    tokens.kept += std::min(sequence.num_new_tokens, context % ratio + (attention.series() - 1) * ratio);
  }
  return tokens;
}

// Each value of an entry is a sum over its tokens by a softmax of as many weights, to which a bias is added: 8 FLOP a
// token; 3 for the entry's norm, and 3 for what of it is rotated. Values of open entries lie in a state of the
// sequence.
[[nodiscard]] Op plan_compression(const StepSizes& sizes, const CompressedAttention& attention, const Batch& batch) {
  const EntryTokens tokens = entry_tokens(attention, batch);
  const double width = attention.entry_width();
  const double summed = tokens.completed * attention.series() * attention.compress_ratio * width;
  const double kept = tokens.kept * attention.compressor_width();
  const int keys = attention.has_indexer() ? 2 : 1;
  Op op = make_op(OpKind::compress_kv, {"compress", WeightSlot::compress_norm, Buffer::qkv, Buffer::none}, sizes,
                  sizes.tokens, attention.compressor_width());
  op.attention.kv_dtype = sizes.options.kv_cache_dtype;
  op.flops = FlopCount(8 * summed + 3 * tokens.completed * (width + keys * attention.qk_rope_head_dim));
  const Bytes weights =
      storage(sizes.model.dtype, width + static_cast<double>(attention.compress_ratio) * attention.series() * width);
  op.add({OperandRole::weight, weights, weights});
  op.add({OperandRole::activation, activations(sizes, 2 * summed + kept), activations(sizes, attention.head_dim)});
  op.add({OperandRole::output, activations(sizes, kept), activations(sizes, attention.head_dim)});
  if (tokens.completed > 0)
    op.add({OperandRole::kv_write,
            kv_storage(sizes.options.kv_cache_dtype, tokens.completed * width, attention.entry_width()),
            storage(sizes.options.kv_cache_dtype, attention.head_dim)});
  return op;
}

// Rotates a part of each query head, the indexer's too, and of the token's key, and writes the key to the window: 3
// FLOP for each value that is rotated.
[[nodiscard]] Op plan_window_cache(const StepSizes& sizes, const CompressedAttention& attention) {
  const auto tokens = static_cast<double>(sizes.tokens), written = tokens - static_cast<double>(sizes.unwritten);
  const double rotated =
      static_cast<double>(attention.num_attention_heads + attention.index_n_heads) * attention.qk_rope_head_dim;
  Op op = make_op(OpKind::rope_and_cache, {.name = "rope_and_cache", .input = Buffer::qkv, .output = Buffer::qkv},
                  sizes, sizes.tokens, attention.query_width() + attention.head_dim);
  op.rotates_part = true;
  op.flops = FlopCount(3 * tokens * (rotated + attention.qk_rope_head_dim));
  op.add({OperandRole::activation, activations(sizes, tokens * (rotated + attention.head_dim)),
          activations(sizes, attention.qk_rope_head_dim)});
  op.add({OperandRole::output, activations(sizes, tokens * rotated), activations(sizes, attention.qk_rope_head_dim)});
  op.attention.kv_dtype = sizes.options.kv_cache_dtype;
  op.attention.is_latent = true;
  if (written > 0)
    op.add({OperandRole::kv_write,
            kv_storage(sizes.options.kv_cache_dtype, written * attention.head_dim, attention.head_dim),
            storage(sizes.options.kv_cache_dtype, attention.head_dim)});
  return op;
}

// Values are rotated keys: the output is rotated back by the position of its query.
[[nodiscard]] Op plan_rotation_back(const StepSizes& sizes, const CompressedAttention& attention) {
  const double values = static_cast<double>(sizes.tokens) * attention.num_attention_heads * attention.qk_rope_head_dim;
  Op op = make_op(OpKind::rope_and_cache,
                  {.name = "rotate_output", .input = Buffer::attention, .output = Buffer::attention}, sizes,
                  sizes.tokens, attention.query_width());
  op.rotates_part = true;
  op.attention.is_latent = true;
  op.flops = FlopCount(3 * values);
  op.add({OperandRole::activation, activations(sizes, values), activations(sizes, attention.qk_rope_head_dim)});
  op.add({OperandRole::output, activations(sizes, values), activations(sizes, attention.qk_rope_head_dim)});
  return op;
}

// Of each token the best entries by `scores`: about 10 FLOP a score, as for experts.
[[nodiscard]] Op plan_choice(const StepSizes& sizes, const CompressedAttention& attention, const Op& scores) {
  const double pairs = scores.attention.score_pairs, tokens = scores.attention.query_tokens;
  Op op = make_op(OpKind::choose_entries, {.name = "choose_entries"}, sizes, sizes.tokens,
                  static_cast<int>(std::max(1.0, pairs / tokens)));
  op.flops = FlopCount(10 * pairs);
  op.add({OperandRole::activation, storage(Dtype::f32, pairs), storage(Dtype::f32, pairs / tokens)});
  op.add({OperandRole::output, Bytes(kEntryNumberBytes * tokens * attention.index_topk),
          Bytes(kEntryNumberBytes * attention.index_topk)});
  return op;
}

void plan_indexer(StepPlan& plan, const StepSizes& sizes, const CompressedAttention& attention) {
  plan.ops.push_back(plan_matmul({"index_q_b_proj", WeightSlot::q_b_proj, Buffer::qkv, Buffer::queries}, sizes,
                                 sizes.format_of(WeightSlot::q_b_proj), sizes.tokens, attention.index_query_width(),
                                 attention.q_lora_rank));
  const Op scores = of_layers(plan_index_scores(attention, sizes.options, plan.batch), sizes);
  if (scores.attention.score_pairs == 0) return;  // no entry is complete
  plan.ops.push_back(scores);
  plan.ops.push_back(plan_choice(sizes, attention, scores));
}

void plan_entries(StepPlan& plan, const StepSizes& sizes, const CompressedAttention& attention) {
  plan.ops.push_back(plan_matmul({"compress_proj", WeightSlot::compress_proj, Buffer::normed, Buffer::qkv}, sizes,
                                 sizes.format_of(WeightSlot::compress_proj), sizes.tokens,
                                 attention.compressor_width() + attention.index_n_heads, sizes.model.hidden_size));
  plan.ops.push_back(plan_compression(sizes, attention, plan.batch));
}

}  // namespace

void plan_compressed_attention(StepPlan& plan, const StepSizes& sizes) {
  const CompressedAttention& attention = *sizes.layer().compressed();
  const WeightFormat format = sizes.format_of(WeightSlot::o_proj);
  const int hidden = sizes.model.hidden_size, latents = attention.q_lora_rank + attention.head_dim;
  plan.ops.push_back(plan_matmul({"qkv_a_proj", WeightSlot::qkv_a_proj, Buffer::normed, Buffer::qkv}, sizes, format,
                                 sizes.tokens, latents, hidden));
  plan.ops.push_back(plan_head_norm({"latent_norm", WeightSlot::qk_norm, Buffer::qkv, Buffer::qkv}, sizes, latents,
                                    attention.head_dim, latents));
  plan.ops.push_back(plan_matmul({"q_b_proj", WeightSlot::q_b_proj, Buffer::qkv, Buffer::queries}, sizes, format,
                                 sizes.tokens, attention.query_width(), attention.q_lora_rank));
  plan.ops.push_back(plan_head_norm({"q_norm", WeightSlot::none, Buffer::queries, Buffer::queries}, sizes,
                                    attention.query_width(), attention.head_dim, 0));
  if (attention.compress_ratio > 0) plan_entries(plan, sizes, attention);
  plan.ops.push_back(plan_window_cache(sizes, attention));
  if (attention.has_indexer()) plan_indexer(plan, sizes, attention);
  for (const Phase phase : {Phase::prefill, Phase::decode}) {
    const Op op = plan_attention(attention, sizes.options, plan.batch, phase);
    if (op.attention.num_sequences > 0) plan.ops.push_back(of_layers(op, sizes));
  }
  plan.ops.push_back(plan_rotation_back(sizes, attention));
  plan.ops.push_back(plan_grouped_product({"o_a_proj", WeightSlot::o_a_proj, Buffer::attention, Buffer::latent_outputs},
                                          sizes, attention.o_groups, sizes.tokens, attention.o_lora_rank,
                                          attention.query_width() / attention.o_groups));
  plan.ops.push_back(plan_matmul({"o_proj", WeightSlot::o_proj, Buffer::latent_outputs, Buffer::projected}, sizes,
                                 format, sizes.tokens, hidden, attention.output_latents()));
}

}  // namespace dculab
