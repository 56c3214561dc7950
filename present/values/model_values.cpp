#include "present/values/model_values.hpp"

#include "config/unit_text.hpp"
#include "model/kv/kv_bytes.hpp"

namespace dculab::present {
namespace {

constexpr const char* kConfig = "config.json";
constexpr const char* kCounted = "counted from the shape";

using Values = std::vector<MachineFigure>;

void add(Values& values, const std::string& key, const std::string& value, const char* source = kConfig) {
  values.push_back({key, value, "", source});
}

[[nodiscard]] const char* block_text(BlockKind block) {
  switch (block) {
    case BlockKind::sequential:
      return "attention, then MLP";
    case BlockKind::parallel:
      return "attention beside MLP, one norm";
    case BlockKind::parallel_two_norms:
      return "attention beside MLP, a norm each";
  }
  return "";
}

[[nodiscard]] std::string mlp_text(const Dense& mlp) {
  if (mlp.kind == MlpKind::gated) return is_gelu(mlp.activation) ? "gated, GELU" : "gated, SiLU";
  return is_gelu(mlp.activation) ? "plain, GELU" : mlp.activation == ActivationKind::relu ? "plain, ReLU" : "plain";
}

[[nodiscard]] std::string bias_text(const LayerKind& kind) {
  std::string text;
  const auto add_name = [&](bool is_there, const char* name) {
    if (is_there) text += (text.empty() ? "" : ", ") + std::string(name);
  };
  add_name(kind.has_kv_heads() && kind.gqa().qkv_bias, "qkv_proj");
  add_name(kind.has_kv_heads() && kind.gqa().output_bias, "o_proj");
  add_name(kind.mla() != nullptr && kind.mla()->bias, "attention");
  add_name(kind.mlp.bias, "MLP");
  return text.empty() ? "none" : text;
}

[[nodiscard]] const char* position_text(PositionKind kind) {
  switch (kind) {
    case PositionKind::rope:
      return "RoPE";
    case PositionKind::alibi:
      return "ALiBi";
    case PositionKind::none:
      return "learned";
  }
  return "";
}

// What only some families have.
void add_newer_parts(Values& values, const std::string& prefix, const Gqa& attention) {
  if (attention.qk_norm != QkNorm::none)
    add(values, prefix + "norm of Q and K",
        attention.qk_norm == QkNorm::whole ? "of all heads at once" : "of each head");
  if (attention.rotary_dim() != attention.heads.head_dim)
    add(values, prefix + "rotated values of a head", std::to_string(attention.rotary_dim()));
  if (attention.logit_soft_cap > 0) add(values, prefix + "soft cap of scores", exact_number(attention.logit_soft_cap));
  if (attention.k_eq_v) add(values, prefix + "V", "of K's projection");
  if (attention.sinks) add(values, prefix + "attention sinks", "a score for each query head");
  if (attention.output_gate) add(values, prefix + "output gate", "a sigmoid for each value");
}

void add_attention(Values& values, const std::string& prefix, const Gqa& attention) {
  const Position& position = attention.position;
  const int window = attention.sliding_window;
  add(values, prefix + "position", position_text(position.kind));
  add(values, prefix + (attention.in_chunks ? "chunk" : "sliding_window"),
      window == 0 ? "none" : std::to_string(window));
  add_newer_parts(values, prefix, attention);
  if (position.kind == PositionKind::rope) add(values, prefix + "rope_theta", exact_number(position.rope_theta));
}

void add_attention(Values& values, const std::string& prefix, const Mla& attention) {
  add(values, prefix + "attention", "over latents (MLA)");
  for (const auto& [key, value] : {std::pair{"q_lora_rank", attention.q_lora_rank},
                                   {"kv_lora_rank", attention.kv_lora_rank},
                                   {"qk_nope_head_dim", attention.qk_nope_head_dim},
                                   {"qk_rope_head_dim", attention.qk_rope_head_dim},
                                   {"v_head_dim", attention.v_head_dim}})
    add(values, prefix + key, value == 0 ? "none" : std::to_string(value));
  add(values, prefix + "rope_theta", exact_number(attention.position.rope_theta));
}

void add_attention(Values& values, const std::string& prefix, const CompressedAttention& attention) {
  const int ratio = attention.compress_ratio;
  add(values, prefix + "attention",
      ratio == 0 ? "over a window" : "over a window and entries of " + std::to_string(ratio) + " tokens");
  for (const auto& [key, value] : {std::pair{"q_lora_rank", attention.q_lora_rank},
                                   {"sliding_window", attention.sliding_window},
                                   {"qk_rope_head_dim", attention.qk_rope_head_dim},
                                   {"o_groups", attention.o_groups},
                                   {"o_lora_rank", attention.o_lora_rank}})
    add(values, prefix + key, std::to_string(value));
  if (attention.has_indexer())
    add(values, prefix + "indexer",
        std::to_string(attention.index_n_heads) + " heads of " + std::to_string(attention.index_head_dim) + ", " +
            std::to_string(attention.index_topk) + " entries a token");
  add(values, prefix + "rope_theta", exact_number(attention.position.rope_theta));
}

void add_attention(Values& values, const std::string& prefix, const GatedDeltaNet& net) {
  add(values, prefix + "attention", "gated delta net");
  add(values, prefix + "states",
      std::to_string(net.num_value_heads) + " of " + std::to_string(net.key_head_dim) + " x " +
          std::to_string(net.value_head_dim) + " values a sequence");
}

void add_experts(Values& values, const std::string& prefix, const LayerKind& kind) {
  const Experts& experts = *kind.experts;
  add(values, prefix + "experts",
      std::to_string(experts.num_experts) + " of width " + std::to_string(experts.intermediate_size) + ", " +
          std::to_string(experts.num_experts_per_tok) + " a token");
  if (kind.mlp.intermediate_size > 0)
    add(values, prefix + (experts.own_norms ? "MLP beside them" : "shared experts"),
        "width " + std::to_string(kind.mlp.intermediate_size));
  if (experts.by_token_id) add(values, prefix + "choice of experts", "by token id");
}

void add_kind(Values& values, const ModelShape& model, std::size_t index) {
  const LayerKind& kind = model.kinds[index];
  const std::string label = kind_label(model, index), prefix = label.empty() ? "" : label + ": ";
  if (!label.empty()) add(values, prefix + "layers", std::to_string(model.num_layers(index)));
  add(values, prefix + "block", block_text(kind.block));
  if (index == 0) add(values, "norm", model.norm == NormKind::layer_norm ? "LayerNorm" : "RMSNorm");
  add(values, prefix + "mlp", mlp_text(kind.mlp));
  if (kind.experts) add_experts(values, prefix, kind);
  add(values, prefix + "biases", bias_text(kind));
  if (kind.norms != NormPlacement::pre)
    add(values, prefix + "norms", kind.norms == NormPlacement::post ? "after each half" : "before and after each half");
  std::visit([&](const auto& attention) { add_attention(values, prefix, attention); }, kind.attention);
}

}  // namespace

std::vector<MachineFigure> model_values(const ModelShape& model) {
  Values values;
  const Heads& heads = model.heads();
  for (const auto& [key, value] : {std::pair{"hidden_size", model.hidden_size},
                                   {"intermediate_size", model.kinds.front().mlp.intermediate_size},
                                   {"num_hidden_layers", model.num_layers()},
                                   {"num_attention_heads", heads.num_attention_heads},
                                   {"num_key_value_heads", heads.num_key_value_heads},
                                   {"head_dim", heads.head_dim},
                                   {"vocab_size", model.vocab_size},
                                   {"max_position_embeddings", model.max_position_embeddings}})
    add(values, key, std::to_string(value));
  add(values, "tie_word_embeddings", model.tie_word_embeddings ? "true" : "false");
  add(values, "dtype", std::string(name(model.dtype)));
  for (std::size_t kind = 0; kind < model.kinds.size(); ++kind) add_kind(values, model, kind);
  if (model.residual_streams > 1) add(values, "residual streams", std::to_string(model.residual_streams));
  if (model.quantization && model.expert_quantization)
    add(values, "routed experts", std::string(name(model.expert_quantization->dtype)));
  if (model.final_logit_soft_cap > 0) add(values, "soft cap of logits", exact_number(model.final_logit_soft_cap));
  for (const std::string& note : model.notes) add(values, "note", note, "read from config.json");
  add(values, "group size", std::to_string(heads.group_size()), "query heads per KV head");
  add(values, "weights", config::short_text(weight_footprint(model, model.layer_format())), kCounted);
  add(values, "KV cache per token (f16)", config::short_text(kv_bytes_per_token(model, Dtype::f16)), kCounted);
  if (const Bytes state = recurrent_state_bytes(model); state > Bytes())
    add(values, "recurrent state per sequence", config::short_text(state), kCounted);
  return values;
}

}  // namespace dculab::present
