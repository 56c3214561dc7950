#include "model/folder/gguf_config.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <span>

#include "core/error.hpp"
#include "fields/json_text.hpp"

namespace dculab {
namespace {

// A key behind the architecture's name and what config.json calls it.
struct GgufKey {
  std::string_view gguf, config;
};

constexpr std::array kCommon{GgufKey{"embedding_length", "hidden_size"},
                             GgufKey{"feed_forward_length", "intermediate_size"},
                             GgufKey{"attention.head_count", "num_attention_heads"},
                             GgufKey{"attention.head_count_kv", "num_key_value_heads"},
                             GgufKey{"attention.key_length", "head_dim"},
                             GgufKey{"context_length", "max_position_embeddings"},
                             GgufKey{"rope.freq_base", "rope_theta"},
                             GgufKey{"attention.sliding_window", "sliding_window"},
                             GgufKey{"expert_used_count", "num_experts_per_tok"},
                             GgufKey{"expert_feed_forward_length", "moe_intermediate_size"},
                             GgufKey{"expert_shared_feed_forward_length", "shared_expert_intermediate_size"}};
constexpr std::array kLatent{GgufKey{"attention.kv_lora_rank", "kv_lora_rank"},
                             GgufKey{"rope.dimension_count", "qk_rope_head_dim"},
                             GgufKey{"attention.value_length_mla", "v_head_dim"},
                             GgufKey{"leading_dense_block_count", "first_k_dense_replace"},
                             GgufKey{"expert_count", "n_routed_experts"},
                             GgufKey{"expert_shared_count", "n_shared_experts"},
                             GgufKey{"expert_group_count", "n_group"},
                             GgufKey{"expert_group_used_count", "topk_group"}};

struct GgufFamily {
  std::string_view architecture, model_type;
  std::string_view experts;  // what config.json calls expert_count
};

constexpr std::array kFamilies{GgufFamily{"llama", "llama", "num_local_experts"},
                               GgufFamily{"qwen2", "qwen2", ""},
                               GgufFamily{"qwen2moe", "qwen2_moe", "num_experts"},
                               GgufFamily{"qwen2vl", "qwen2", ""},
                               GgufFamily{"qwen3", "qwen3", ""},
                               GgufFamily{"qwen3moe", "qwen3_moe", "num_experts"},
                               GgufFamily{"qwen3vl", "qwen3", ""},
                               GgufFamily{"gemma2", "gemma2", ""},
                               GgufFamily{"gemma3", "gemma3_text", ""},
                               GgufFamily{"phi3", "phi3", ""},
                               GgufFamily{"glm4", "glm4", ""},
                               GgufFamily{"gpt-oss", "gpt_oss", "num_local_experts"},
                               GgufFamily{"internlm2", "internlm2", ""},
                               GgufFamily{"starcoder2", "starcoder2", ""},
                               GgufFamily{"olmo2", "olmo2", ""},
                               GgufFamily{"granite", "granite", ""},
                               GgufFamily{"baichuan", "baichuan", ""},
                               GgufFamily{"deepseek2", "deepseek_v3", ""},
                               GgufFamily{"minimax-m2", "minimax_m2", "num_local_experts"}};

[[nodiscard]] Node scalar(ScalarType type, std::string text) {
  Node node;
  node.kind = NodeKind::scalar;
  node.type = type;
  node.text = std::move(text);
  return node;
}

[[nodiscard]] Node number_node(double value) {
  if (value == std::floor(value) && std::abs(value) < 1e15)
    return scalar(ScalarType::integer, std::to_string(static_cast<std::int64_t>(value)));
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.9g", value);
  return scalar(ScalarType::real, text.data());
}

class ConfigBuilder {
 public:
  ConfigBuilder(const GgufHeader& header, const std::string& file)
      : header_(header), file_(file), architecture_(header.text("general.architecture")) {
    config_.kind = NodeKind::map;
  }

  [[nodiscard]] std::string build() {
    const auto* family = std::ranges::find(kFamilies, std::string_view(architecture_), &GgufFamily::architecture);
    if (family == kFamilies.end()) refuse_architecture();
    std::string_view type = family->model_type;
    if (type == "llama" && value("expert_count").value_or(0) > 0) type = "mixtral";
    if (type == "deepseek_v3" && value("expert_gating_func").value_or(1) == 1) type = "deepseek_v2";
    set("model_type", scalar(ScalarType::text, std::string(type)));
    add(kCommon);
    if (!family->experts.empty())
      if (const auto experts = value("expert_count"); experts && *experts > 0)
        set(family->experts, number_node(*experts));
    add_layers();
    add_vocabulary();
    if (type.starts_with("deepseek")) add_latents();
    if (type == "qwen3_moe" || type == "qwen2_moe")
      set("norm_topk_prob", scalar(ScalarType::flag, type == "qwen3_moe" ? "true" : "false"));
    return json_text(config_);
  }

 private:
  [[noreturn]] void refuse_architecture() const {
    std::string known;
    for (const GgufFamily& each : kFamilies) known.append(known.empty() ? "" : ", ").append(each.architecture);
    throw InputError(file_, "general.architecture '" + architecture_ + "' is not known in GGUF (" + known +
                                "); give the model's folder with its config.json");
  }

  void set(std::string_view key, Node node) { set_member(config_, key, std::move(node)); }

  // One number, or the same for all layers.
  [[nodiscard]] std::optional<double> value(std::string_view key) const {
    const std::string whole = architecture_ + "." + std::string(key);
    const auto found = header_.metadata.find(whole);
    if (found == header_.metadata.end()) return std::nullopt;
    const auto* layers = std::get_if<std::vector<double>>(&found->second);
    if (layers == nullptr) return header_.number(whole);
    if (layers->empty()) return std::nullopt;
    if (std::ranges::any_of(*layers, [&](double each) { return each != layers->front(); }))
      throw InputError(file_, whole +
                                  ": differs from layer to layer, which is not read from GGUF; give the model's "
                                  "folder with its config.json");
    return layers->front();
  }

  void add(std::span<const GgufKey> keys) {
    for (const auto& [gguf, config] : keys)
      if (const auto found = value(gguf); found && std::isfinite(*found)) set(config, number_node(*found));
  }

  // Layers that predict further tokens are counted among block_count.
  void add_layers() {
    const auto layers = value("block_count");
    if (layers) set("num_hidden_layers", number_node(*layers - value("nextn_predict_layers").value_or(0)));
  }

  void add_vocabulary() {
    auto size = value("vocab_size");
    const auto tokens = header_.metadata.find("tokenizer.ggml.tokens");
    if (!size && tokens != header_.metadata.end())
      if (const auto* texts = std::get_if<GgufTexts>(&tokens->second)) size = static_cast<double>(texts->count);
    if (size) set("vocab_size", number_node(*size));
    const bool has_head =
        std::ranges::any_of(header_.tensors, [](const auto& each) { return each.name == "output.weight"; });
    const bool is_whole = header_.number("split.count").value_or(1) <= 1;  // the head is in a later part
    set("tie_word_embeddings", scalar(ScalarType::flag, has_head || !is_whole ? "false" : "true"));
  }

  void add_latents() {
    add(kLatent);
    const auto rank = value("attention.q_lora_rank");
    set("q_lora_rank", rank && *rank > 0 ? number_node(*rank) : Node());
    // Newer conversions state the heads that attention has when K and V are rebuilt; older ones, K's length as it is.
    const auto whole =
        value("attention.key_length_mla") ? value("attention.key_length_mla") : value("attention.key_length");
    const auto rotated = value("rope.dimension_count");
    if (whole && rotated) set("qk_nope_head_dim", number_node(*whole - *rotated));
    if (!value("attention.value_length_mla"))
      if (const auto values = value("attention.value_length")) set("v_head_dim", number_node(*values));
  }

  const GgufHeader& header_;
  const std::string& file_;
  std::string architecture_;
  Node config_;
};

[[nodiscard]] bool is_layer_matrix(const GgufTensor& tensor) {
  return tensor.name.starts_with("blk.") && tensor.name.ends_with(".weight") && tensor.shape.size() >= 2;
}

// Embedding and output head, quantized or not, stand for all that is no matrix of a layer: norms hardly count.
void set_gguf_head(const GgufHeader& header, ModelShape& shape) {
  constexpr double kMostQuantized = 12;
  const auto named = [&header](const char* name) { return std::ranges::find(header.tensors, name, &GgufTensor::name); };
  auto head = named("output.weight");
  if (head == header.tensors.end()) head = named("token_embd.weight");
  if (head == header.tensors.end()) return;
  const GgufType* type = find_gguf_type(head->type);
  if (type != nullptr && type->bits <= kMostQuantized) shape.dtype = Dtype::int8;
}

// The nearest format that prices know, and what it takes.
struct NearestFormat {
  double most_bits;
  WeightFormat format;
  const char* name;
};
constexpr std::array kFormats{NearestFormat{2.9, {Dtype::int2, 32}, "int2 in groups of 32"},
                              NearestFormat{3.9, {Dtype::int3, 32}, "int3 in groups of 32"},
                              NearestFormat{5.2, {Dtype::int4, 32}, "int4 in groups of 32"},
                              NearestFormat{12, {Dtype::int8, 32}, "int8 in groups of 32"},
                              NearestFormat{24, {Dtype::f16, 0}, "f16"},
                              NearestFormat{1e9, {Dtype::f32, 0}, "f32"}};

}  // namespace

std::string gguf_config(const GgufHeader& header, const std::string& file) {
  return ConfigBuilder(header, file).build();
}

void set_gguf_weights(const GgufHeader& header, ModelShape& shape) {
  double values = 0, bits = 0;
  for (const GgufTensor& tensor : header.tensors) {
    if (!is_layer_matrix(tensor)) continue;
    const GgufType* type = find_gguf_type(tensor.type);
    if (type == nullptr)
      throw InputError(tensor.name, "is of type " + std::to_string(tensor.type) + ", whose size is not known");
    values += tensor.values();
    bits += tensor.values() * type->bits;
  }
  if (values == 0) return;
  const double each = bits / values;
  const auto* nearest =
      std::ranges::find_if(kFormats, [each](const NearestFormat& format) { return each <= format.most_bits; });
  shape.quantization = nearest->format;
  std::array<char, 96> text{};
  std::snprintf(text.data(), text.size(), "GGUF: %.2f bits a weight of a layer, priced as %s (%.2f)", each,
                nearest->name, 8 * weight_storage(nearest->format, 1 << 20).value() / (1 << 20));
  shape.notes.emplace_back(text.data());
  set_gguf_head(header, shape);
  if (const auto parts = header.number("split.count"); parts && *parts > 1)
    shape.notes.push_back("GGUF: the first of " + std::to_string(static_cast<int>(*parts)) +
                          " parts stands for all; the output head is taken for one of its own");
}

}  // namespace dculab
