#include "model/model_shape.hpp"

#include <algorithm>
#include <utility>

#include "core/kivi.hpp"
#include "model/weight_shapes.hpp"

namespace dculab {
namespace {

void require_size(std::vector<std::string>& found, const std::string& field, std::int64_t value, int most) {
  if (value <= 0) found.push_back(field + " must be positive, not " + std::to_string(value));
  if (value > most)
    found.push_back(field + " must be at most " + std::to_string(most) + ", not " + std::to_string(value));
}

void require_sizes(std::vector<std::string>& found, const LayerKind& kind) {
  const Heads& heads = kind.attention.heads;
  if (!kind.experts) require_size(found, "intermediate_size", kind.mlp.intermediate_size, kLargestModelField);
  for (const auto& [field, value] : {std::pair{"num_attention_heads", heads.num_attention_heads},
                                     {"num_key_value_heads", heads.num_key_value_heads},
                                     {"head_dim", heads.head_dim}})
    require_size(found, field, value, kLargestModelField);
}

void check_experts(std::vector<std::string>& found, const Experts& experts) {
  for (const auto& [field, value] : {std::pair{"num_experts", experts.num_experts},
                                     {"num_experts_per_tok", experts.num_experts_per_tok},
                                     {"moe_intermediate_size", experts.intermediate_size},
                                     {"n_group", experts.num_groups},
                                     {"topk_group", experts.groups_per_tok}})
    require_size(found, field, value,
                 field == std::string_view("moe_intermediate_size") ? kLargestModelField : kMostExperts);
  if (!found.empty()) return;
  const auto text = [](int value) { return std::to_string(value); };
  if (experts.num_experts % experts.num_groups != 0)
    found.push_back("n_group (" + text(experts.num_groups) + ") does not divide the " + text(experts.num_experts) +
                    " experts");
  if (experts.groups_per_tok > experts.num_groups)
    found.push_back("topk_group (" + text(experts.groups_per_tok) + ") is more than n_group (" +
                    text(experts.num_groups) + ")");
  else if (experts.num_experts_per_tok > experts.num_experts / experts.num_groups * experts.groups_per_tok)
    found.push_back("num_experts_per_tok (" + text(experts.num_experts_per_tok) + ") is more than the " +
                    text(experts.num_experts / experts.num_groups * experts.groups_per_tok) +
                    " experts to choose from");
}

void check_rotation(std::vector<std::string>& found, const Gqa& attention) {
  const int rotary_dim = attention.rotary_dim();
  const RopeScaling& scaling = attention.position.rope_scaling;
  if (rotary_dim == attention.heads.head_dim && rotary_dim % 2 != 0)
    found.push_back("head_dim must be even for rotary embedding");
  else if (rotary_dim % 2 != 0 || rotary_dim > attention.heads.head_dim)
    found.push_back("the part of a head that is rotated, " + std::to_string(rotary_dim) +
                    " values, must be even and no more than head_dim");
  else if (scaling.kind == RopeScalingKind::longrope && std::ssize(scaling.short_factor) != rotary_dim / 2)
    found.push_back("short_factor and long_factor of LongRoPE must have " + std::to_string(rotary_dim / 2) +
                    " entries");
}

void check_attention(std::vector<std::string>& found, const Gqa& attention) {
  const Heads& heads = attention.heads;
  require_size(found, "num_attention_heads * head_dim", std::int64_t{heads.num_attention_heads} * heads.head_dim,
               kLargestModelField);
  if (heads.num_attention_heads % heads.num_key_value_heads != 0)
    found.push_back("num_attention_heads (" + std::to_string(heads.num_attention_heads) +
                    ") is not a multiple of num_key_value_heads (" + std::to_string(heads.num_key_value_heads) + ")");
  if (attention.position.kind == PositionKind::rope) check_rotation(found, attention);
  if (attention.sliding_window < 0) found.push_back("sliding_window must not be negative");
}

void check_layers(std::vector<std::string>& found, const ModelShape& model) {
  require_size(found, "num_hidden_layers", model.num_layers(), kMostLayers);
  const auto is_known = [&model](std::uint8_t kind) { return kind < model.kinds.size(); };
  if (!std::ranges::all_of(model.layers, is_known)) found.emplace_back("layers must be of the kinds that there are");
  for (std::size_t kind = 0; kind < model.kinds.size(); ++kind)
    if (model.num_layers() > 0 && model.num_layers(kind) == 0)
      found.push_back("no layer is of kind " + std::to_string(kind + 1));
  const auto differs = [&model](const LayerKind& kind) { return kind.block != model.kinds.front().block; };
  if (std::ranges::any_of(model.kinds, differs)) found.emplace_back("all layers must have the same block");
  const auto is_mixed = [](const LayerKind& kind) {
    return kind.block != BlockKind::sequential && kind.norms != NormPlacement::pre;
  };
  if (std::ranges::any_of(model.kinds, is_mixed))
    found.emplace_back("norms after attention and MLP need a block where one follows the other");
}

}  // namespace

int ModelShape::num_layers(std::size_t kind) const {
  return static_cast<int>(std::ranges::count(layers, static_cast<std::uint8_t>(kind)));
}

bool ModelShape::has_alibi() const {
  return std::ranges::any_of(kinds,
                             [](const LayerKind& kind) { return kind.attention.position.kind == PositionKind::alibi; });
}

WeightFormat ModelShape::slot_format(WeightSlot slot, const LayerKind& kind, WeightFormat layers_format) const {
  const bool is_of_experts = slot == WeightSlot::expert_up_proj || slot == WeightSlot::expert_down_proj;
  const bool is_of_mlp = slot == WeightSlot::up_proj || slot == WeightSlot::down_proj;
  const bool is_plain = slot == WeightSlot::router || slot == WeightSlot::shared_gate ? true
                        : is_of_experts                                               ? plain.experts
                        : is_of_mlp ? (kind.experts ? plain.shared_experts : plain.mlp)
                                    : plain.attention;
  return is_plain ? WeightFormat{dtype, 0} : layers_format;
}

std::string kind_label(const ModelShape& model, std::size_t kind) {
  if (model.kinds.size() == 1) return {};
  const auto differ = [&model](auto part) {
    return std::ranges::any_of(model.kinds, [&](const LayerKind& each) { return part(each) != part(model.kinds[0]); });
  };
  const auto window = [](const LayerKind& each) { return each.attention.sliding_window; };
  const auto is_mixture = [](const LayerKind& each) { return each.experts.has_value(); };
  const LayerKind& own = model.kinds[kind];
  std::string label;
  if (differ(window)) label = window(own) == 0 ? "full attention" : "window " + std::to_string(window(own));
  if (differ(is_mixture)) label += (label.empty() ? "" : ", ") + std::string(own.experts ? "experts" : "dense MLP");
  return label.empty() ? "kind " + std::to_string(kind + 1) : label;
}

void set_layers(ModelShape& model, int count, LayerKind kind) {
  model.kinds = {std::move(kind)};
  model.layers.assign(static_cast<std::size_t>(std::max(0, count)), 0);
}

void add_layer(ModelShape& model, const LayerKind& kind) {
  const auto found = std::ranges::find(model.kinds, kind);
  model.layers.push_back(static_cast<std::uint8_t>(found - model.kinds.begin()));
  if (found == model.kinds.end()) model.kinds.push_back(kind);
}

namespace {

[[nodiscard]] ModelShape without_unused_kinds(ModelShape model) {
  const ModelShape before = model;
  model.kinds.clear(), model.layers.clear();
  for (const std::uint8_t kind : before.layers) add_layer(model, before.kinds[kind]);
  return model;
}

}  // namespace

ModelShape with_layers(ModelShape model, int count) {
  const std::size_t own = model.layers.size();
  model.layers.resize(static_cast<std::size_t>(count));
  for (std::size_t layer = own; own > 0 && layer < model.layers.size(); ++layer)
    model.layers[layer] = model.layers[layer - own];
  return without_unused_kinds(std::move(model));
}

ModelShape with_kv_heads(ModelShape model, int num_key_value_heads) {
  for (LayerKind& kind : model.kinds) kind.attention.heads.num_key_value_heads = num_key_value_heads;
  return model;
}

bool same_but_for_kv_heads(const ModelShape& a, const ModelShape& b) {
  return a.hidden_size == b.hidden_size && a.vocab_size == b.vocab_size && a.layers == b.layers &&
         with_kv_heads(a, 1).kinds == with_kv_heads(b, 1).kinds;
}

std::vector<std::string> problems(const ModelShape& model) {
  std::vector<std::string> found;
  for (const auto& [field, value] : {std::pair{"hidden_size", model.hidden_size},
                                     {"vocab_size", model.vocab_size},
                                     {"max_position_embeddings", model.max_position_embeddings}})
    require_size(found, field, value, kLargestModelField);
  for (const LayerKind& kind : model.kinds) require_sizes(found, kind);
  check_layers(found, model);
  if (!found.empty()) return found;
  if (model.quantized_lm_head && model.tie_word_embeddings)
    found.push_back("lm_head is quantized, but it is the embedding (tie_word_embeddings), which is not");
  const auto has_experts = [](const LayerKind& kind) { return kind.experts.has_value(); };
  if (model.quantization && model.plain.attention && model.plain.mlp && std::ranges::none_of(model.kinds, has_experts))
    found.emplace_back("quantization_config leaves all matrices of the layers as they are, for there are no experts");
  for (const LayerKind& kind : model.kinds) check_attention(found, kind.attention);
  for (const LayerKind& kind : model.kinds)
    if (kind.experts) check_experts(found, *kind.experts);
  return found;
}

double layer_matrix_values(const ModelShape& model, const LayerKind& kind) {
  double values = 0;
  for (const WeightShape& weight : layer_weights(model, kind)) values += weight.matrix_values();
  return values;
}

Bytes layer_matrix_bytes(const ModelShape& model, const LayerKind& kind, WeightFormat format) {
  Bytes bytes;
  for (const WeightShape& weight : layer_weights(model, kind)) {
    if (!weight.is_matrix() || weight.is_plain) continue;
    WeightFormat own = model.slot_format(weight.slot, kind, format);
    if (own.group_size < 0) own.group_size = weight.columns;
    bytes += weight_storage(own, weight.matrix_values());
  }
  return bytes;
}

double plain_values(const ModelShape& model) {
  double values = 0;
  for (const WeightShape& weight : outer_weights(model)) values += weight.plain_values();
  for (std::size_t kind = 0; kind < model.kinds.size(); ++kind)
    for (const WeightShape& weight : layer_weights(model, model.kinds[kind]))
      values += model.num_layers(kind) * weight.plain_values();
  return values;
}

Bytes weight_footprint(const ModelShape& model, WeightFormat format) {
  const double embedding = static_cast<double>(model.vocab_size) * model.hidden_size;
  const Bytes head = model.tie_word_embeddings ? Bytes() : weight_storage(model.head_format(format), embedding);
  Bytes layers;
  for (std::size_t kind = 0; kind < model.kinds.size(); ++kind)
    layers += layer_matrix_bytes(model, model.kinds[kind], format) * model.num_layers(kind);
  return layers + head + storage(model.dtype, embedding + plain_values(model));
}

Bytes kv_bytes_per_token(const ModelShape& model, Dtype kv_cache_dtype) {
  Bytes bytes;
  for (std::size_t kind = 0; kind < model.kinds.size(); ++kind) {
    const Heads& heads = model.kinds[kind].attention.heads;
    bytes += kv_storage(kv_cache_dtype, 2.0 * heads.kv_width() * model.num_layers(kind), heads.head_dim);
  }
  return bytes;
}

Bytes kv_residual_bytes(const ModelShape& model, Dtype kv_cache_dtype, int residual_tokens) {
  if (!is_kivi(kv_cache_dtype)) return Bytes();
  return kv_bytes_per_token(model, Dtype::f16) * residual_tokens;
}

}  // namespace dculab
