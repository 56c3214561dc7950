#include "sim/memory/capacity.hpp"

#include <algorithm>
#include <cmath>

#include "core/kv/table.hpp"
#include "lower/dculab_cpu/expanded_kv.hpp"
#include "lower/dculab_gpu/step_buffers.hpp"
#include "lower/kernel_library.hpp"
#include "lower/kv/kv_memory.hpp"
#include "model/kv/kv_bytes.hpp"
#include "sim/hardware/process_share.hpp"

namespace dculab::sim {
namespace {

[[nodiscard]] double attention_values(const Gqa& attention) { return attention.projected_width(); }
// Prefill expands the latents of a chunk of tokens at a time; decode has queries and outputs over latents.
[[nodiscard]] double attention_values(const Mla& attention) {
  const double latents = attention.num_attention_heads * (attention.latent_width() + attention.kv_lora_rank);
  return attention.query_width() + attention.q_lora_rank + attention.latent_width() +
         std::max<double>(latents, attention.expanded_width());
}
// Outputs are as wide as queries. Scores of the indexer are those of a part of the tokens at a time.
[[nodiscard]] double attention_values(const CompressedAttention& attention) {
  return 2.0 * attention.query_width() + attention.index_query_width() + attention.q_lora_rank + attention.head_dim +
         attention.compressor_width() + attention.output_latents();
}
[[nodiscard]] double attention_values(const GatedDeltaNet& net) { return net.conv_width() + 2.0 * net.value_width(); }

// Activations of a token in a layer of a kind.
[[nodiscard]] double values_per_token(const ModelShape& model, const LayerKind& kind) {
  // The residual, normed, what is to be added; of a parallel block twice.
  const double hidden_rows = model.residual_streams + (kind.block == BlockKind::sequential ? 2.0 : 3.0);
  const double mlp_inputs = static_cast<double>(kind.mlp.up_width()) + kind.mlp.intermediate_size;
  double expert_values = 0;
  if (const auto& experts = kind.experts)
    expert_values = experts->num_experts + static_cast<double>(experts->num_experts_per_tok) *
                                               (3.0 * experts->intermediate_size + model.hidden_size);
  return hidden_rows * model.hidden_size +
         std::visit([](const auto& attention) { return attention_values(attention); }, kind.attention) + mlp_inputs +
         expert_values;
}

// Contexts may be as long as the model takes.
[[nodiscard]] Bytes engine_buffers(const Machine& machine, const ModelShape& model, const EngineOptions& options) {
  if (!lower::are_ours(machine.stack.kernels)) return {};
  if (machine.kind == lower::DeviceKind::cpu) return lower::dculab_cpu::expanded_memory(model);
  using namespace lower::dculab_gpu;
  const int longest = model.max_position_embeddings;
  const std::int64_t partials = all_partials(decode_partials(model, longest, options.attention_split.partition_tokens),
                                             options.max_num_seqs, kMostPartials);
  return ExpandedSizes(model, longest, kMostExpanded).memory(options.activation_dtype) +
         storage(Dtype::f32, static_cast<double>(partials));
}

[[nodiscard]] Bytes kept_of_sequence(const Machine& machine, const ModelShape& model, const EngineOptions& options) {
  Bytes kept;
  if (quantizes_together(options.kv_cache_dtype))
    kept += kv_residual_bytes(model, options.kv_cache_dtype, options.kv_residual_tokens);
  if (lower::are_ours(machine.stack.kernels)) kept += lower::kv_policy_memory(machine.kind, model, options);
  return kept;
}

// Copies of kv_b_proj that a program keeps in more bytes than it is stored in.
[[nodiscard]] Bytes absorbed_copies(const Machine& machine, const ModelShape& model, WeightFormat layers) {
  const double bytes = machine.stack.kernels.unfused.bytes_per_absorbed_weight;
  Bytes copies;
  for (std::size_t kind = 0; kind < model.kinds.size(); ++kind) {
    const Mla* const attention = model.kinds[kind].mla();
    if (attention == nullptr) continue;
    const WeightFormat format = model.slot_format(WeightSlot::kv_b_proj, model.kinds[kind], layers);
    if (bits(format.dtype) < 8 * bytes)
      copies += Bytes(bytes * attention->expanded_width() * attention->kv_lora_rank) * model.num_layers(kind);
  }
  return copies;
}

// What is kept apart is reserved for `reserved` sequences. Each one more takes its own out of what blocks would use.
[[nodiscard]] std::int64_t sequences_that_fit(const Capacity& room, Bytes kept_of_each, std::int64_t blocks_each,
                                              std::int64_t reserved) {
  const std::int64_t by_blocks = room.num_blocks / blocks_each;
  if (by_blocks <= reserved || kept_of_each == Bytes()) return by_blocks;
  const Bytes each = kept_of_each + room.block_bytes * static_cast<double>(blocks_each);
  return std::max(reserved, static_cast<std::int64_t>((room.kv_budget + room.kept_apart) / each));
}

}  // namespace

Bytes activation_footprint(const ModelShape& model, const EngineOptions& options) {
  double per_token = 0;
  for (const LayerKind& kind : model.kinds) per_token = std::max(per_token, values_per_token(model, kind));
  const double sequences = options.max_num_seqs;
  const double drafts =
      std::min<double>(sequences * options.speculative_config.shape.num_tokens(), options.max_num_batched_tokens);
  const double logits = (sequences + drafts) * model.vocab_size;
  const double all_at_once = static_cast<double>(options.max_num_seqs) * model.max_position_embeddings;
  const double tokens = std::min<double>(options.max_num_batched_tokens, all_at_once);
  return storage(options.activation_dtype, tokens * per_token) + storage(Dtype::f32, logits);
}

Capacity capacity(const Machine& machine, const ModelShape& model, const EngineOptions& options,
                  int tokens_per_sequence, const DraftMemory& draft) {
  Capacity result;
  result.weights =
      weight_footprint(model, options.weights) + absorbed_copies(machine, model, options.weights) + draft.weights;
  result.activations = activation_footprint(model, options) + draft.activations;
  const Bytes usable = machine.dram().size * options.gpu_memory_utilization / processes_of(machine, model);
  const Bytes kept_of_each = kept_of_sequence(machine, model, options);
  result.kept_apart = kept_of_each * options.max_num_seqs;
  result.buffers = engine_buffers(machine, model, options);
  result.kv_budget =
      std::max(Bytes{}, usable - result.weights - result.activations - result.kept_apart - result.buffers);
  result.block_bytes =
      kv_block_bytes(model, options) + draft.kv_bytes_per_token * static_cast<double>(options.block_size);
  result.num_blocks = static_cast<std::int64_t>(result.kv_budget / result.block_bytes);
  result.demand = kv_demand(model, options.kv_cache_dtype, machine.stack.frees_windows && !options.shares_blocks());
  result.state = kv_bytes_per_token(model, options.kv_cache_dtype) * result.demand.state_tokens;
  const std::int64_t held = result.demand(tokens_per_sequence);
  const std::int64_t blocks_each = (held + options.block_size - 1) / options.block_size;
  result.max_sequences = sequences_that_fit(result, kept_of_each, blocks_each, options.max_num_seqs);
  result.wasted_share = 1 - static_cast<double>(held) / static_cast<double>(blocks_each * options.block_size);
  return result;
}

}  // namespace dculab::sim
