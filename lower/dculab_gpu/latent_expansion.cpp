#include "lower/dculab_gpu/latent_expansion.hpp"

#include <algorithm>
#include <cmath>

#include "lower/dculab_gpu/latent_tiling.hpp"

namespace dculab::lower::dculab_gpu {
namespace {

[[nodiscard]] bool expands(const Op& op) { return op.weight == WeightSlot::kv_b_proj && op.groups.count == 0; }

[[nodiscard]] bool attends_to_expanded(const Op& op) {
  return (op.kind == OpKind::attention_prefill || op.kind == OpKind::attention_decode) && !op.attention.is_paged;
}

// The attention that reads what the op expands; none where the step has the op alone.
[[nodiscard]] const Op* reader_of(const Op& expansion, const StepPlan& step) {
  const auto reads = [&expansion](const Op& op) {
    return attends_to_expanded(op) && op.layer_kind == expansion.layer_kind &&
           op.attention.context_tokens == static_cast<double>(expansion.m);
  };
  const auto found = std::ranges::find_if(step.ops, reads);
  return found == step.ops.end() ? nullptr : &*found;
}

struct Expansion {
  double parts = 0;   // of the heads of all sequences
  double pieces = 0;  // of all parts
  double tokens = 0;  // that are gathered, once for each part
};

[[nodiscard]] Expansion expansion_for(const Op& attention, const Batch& batch) {
  const Phase phase = attention.kind == OpKind::attention_prefill ? Phase::prefill : Phase::decode;
  const int heads = attention.attention.num_query_heads;
  Expansion result;
  for (const SequenceSlice& sequence : batch.sequences) {
    if (sequence.phase != phase) continue;
    const int context = sequence.context_tokens();
    const int parts = ceiling_quotient(heads, expanded_heads(context, heads, kMostExpandedBytes));
    result.parts += parts;
    result.pieces += parts * ceiling_quotient(context, kExpandedPiece);
    result.tokens += static_cast<double>(parts) * context;
  }
  return result;
}

[[nodiscard]] Expansion expansion_of(const Op& op, const StepPlan& step) {
  if (const Op* reader = reader_of(op, step)) return expansion_for(*reader, step.batch);
  const double tokens = static_cast<double>(op.m);
  return {.parts = 1, .pieces = std::ceil(tokens / kExpandedPiece), .tokens = tokens};
}

}  // namespace

double latent_launches(const Op& op, const StepPlan& step) {
  if (op.kind == OpKind::rope_and_cache) return op.attention.is_latent ? 1 : 0;
  if (attends_to_expanded(op)) return std::max(0.0, expansion_for(op, step.batch).parts - 1);
  return expands(op) ? std::max(0.0, 3 * expansion_of(op, step).pieces - 1) : 0;
}

// Values of a token that are gathered: its latent and its rotated key, which is what keys have beyond their rows of w.
[[nodiscard]] double gathered_width(const Op& op, const AttentionWork& reader) {
  const double unrotated = static_cast<double>(op.n) / reader.num_query_heads - reader.value_dim;
  return static_cast<double>(op.k) + reader.head_dim - unrotated;
}

void add_expansion(Streams& streams, const Op& op, const StepPlan& step) {
  if (!expands(op) || op.m == 0) return;
  const Expansion expansion = expansion_of(op, step);
  const Op* const reader = reader_of(op, step);
  const double heads = reader != nullptr ? reader->attention.num_query_heads : 0;
  const double width = reader != nullptr ? gathered_width(op, reader->attention) : static_cast<double>(op.k);
  const Bytes latents = storage(op.activation_dtype, expansion.tokens * width);
  const Bytes rows = storage(Dtype::f16, static_cast<double>(op.m) * static_cast<double>(op.n));
  const double stored = static_cast<double>(op.m) * heads * (kExpandedHeadDim + kExpandedValueDim);
  streams.add({.role = OperandRole::activation, .unique = latents});  // from the cache,
  streams.add({.role = OperandRole::output, .unique = latents});      // to the product
  streams.add({.role = OperandRole::activation, .unique = rows});
  streams.add({.role = OperandRole::output, .unique = storage(Dtype::f16, stored)});
}

}  // namespace dculab::lower::dculab_gpu
