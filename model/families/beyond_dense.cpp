// What tells a configuration from that of a dense decoder, when its family is not known. A price of the wrong kind of
// model is worse than none.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>

#include "fields/json_text.hpp"
#include "fields/printable_text.hpp"
#include "model/families/config_fields.hpp"
#include "model/families/families.hpp"

namespace dculab {
namespace {

// Markers of a part stand together.
struct Marker {
  const char* key;
  const char* part;
};

// These count where they are neither null, false, empty nor a number from -1 to 1.
constexpr std::array kExpertKeys{"n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts",
                                 "num_moe_experts"};

constexpr std::array kMarkers{Marker{"kv_lora_rank", "multi-head latent attention"},
                              Marker{"q_lora_rank", "multi-head latent attention"},
                              Marker{"index_topk", "sparse attention"},
                              Marker{"sparse_attention_config", "sparse attention"},
                              Marker{"compress_ratios", "compressed keys and values"},
                              Marker{"attention_chunk_size", "attention within chunks"},
                              Marker{"attn_output_gate", "gated attention"},
                              Marker{"attention_output_gate", "gated attention"},
                              Marker{"global_head_dim", "heads of two sizes"},
                              Marker{"swa_head_dim", "heads of two sizes"},
                              Marker{"num_kv_shared_layers", "keys and values shared by layers"},
                              Marker{"use_cla", "keys and values shared by layers"},
                              Marker{"hidden_size_per_layer_input", "embeddings of each layer"},
                              Marker{"cross_attention_layers", "cross-attention"},
                              Marker{"is_encoder_decoder", "an encoder"},
                              Marker{"type_vocab_size", "an encoder's segments"},
                              Marker{"patch_size", "an encoder of images"},
                              Marker{"num_mel_bins", "an encoder of audio"},
                              Marker{"lru_width", "recurrent layers"},
                              Marker{"decay_low_rank_dim", "recurrent layers of RWKV"},
                              Marker{"rescale_every", "recurrent layers of RWKV"},
                              Marker{"use_short_conv", "linear attention"},
                              Marker{"expand_k", "linear attention"},
                              Marker{"expand_v", "linear attention"}};

constexpr const char* kAttnTypeList = "attn_type_list";

// Prefixes of what state-space layers are described by.
constexpr std::array kStatePrefixes{"mamba_", "ssm_", "state_size", "time_step_rank"};

[[nodiscard]] const Node* find_set(const JsonFields& config, std::string_view key) {
  for (const Node& member : config.members()) {
    if (member.key != key || member.kind == NodeKind::null) continue;
    if (member.kind != NodeKind::scalar) return member.children.empty() ? nullptr : &member;
    const bool is_number = member.is(ScalarType::integer) || member.is(ScalarType::real);
    return member.text == "false" || (is_number && std::abs(number_of(member)) <= 1) ? nullptr : &member;
  }
  return nullptr;
}

[[nodiscard]] std::string in_brackets(std::string_view key) { return " (" + std::string(key) + ")"; }

[[nodiscard]] std::string share_text(const std::string& what, std::int64_t count, std::int64_t all) {
  return what + " layers in " + std::to_string(count) + " of " + std::to_string(all);
}

[[nodiscard]] bool is_plain_layer(std::string_view type) {
  constexpr std::array kPlain{"attention", "full_attention", "sliding_attention", "mlp", "moe", "-", "*", "E"};
  return std::ranges::find(kPlain, type) != kPlain.end();
}

// "linear attention"
[[nodiscard]] std::string kind_text(std::string type) {
  if (type == "M") return "mamba";
  if (type.ends_with("_attention")) std::ranges::replace(type, '_', ' ');
  return shortened(printable(type), 40);
}

// Layers of other kinds than attention and MLP, of a list with the kind of each.
void add_listed_layers(std::vector<std::string>& parts, const std::vector<std::string>& types) {
  std::map<std::string, std::int64_t> counts;
  for (const std::string& type : types)
    if (!is_plain_layer(type)) ++counts[type];
  for (const auto& [type, count] : counts) parts.push_back(share_text(kind_text(type), count, std::ssize(types)));
}

[[nodiscard]] std::vector<std::string> letters_of(const std::string& pattern) {
  std::vector<std::string> letters;
  for (const char letter : pattern) letters.emplace_back(1, letter);
  return letters;
}

// One layer in config[key] has full attention, and the others something else.
void add_interval(std::vector<std::string>& parts, const JsonFields& config, const char* key, const char* what) {
  if (find_set(config, key) == nullptr || !config.has("num_hidden_layers")) return;
  const int all = read_num_layers(config), interval = read_size(config, {key});
  parts.push_back(share_text(what, all - all / interval, all));
}

// MiniMax-01 has 1 for each layer with softmax attention, and 0 for linear.
void add_numbered_layers(std::vector<std::string>& parts, const JsonFields& config) {
  const std::vector<int> types = config.integers(kAttnTypeList);
  if (const auto linear = std::ranges::count_if(types, [](int type) { return type != 1; }); linear > 0)
    parts.push_back(share_text("linear attention", linear, std::ssize(types)));
}

void add_other_layers(std::vector<std::string>& parts, const JsonFields& config) {
  add_numbered_layers(parts, config);
  for (const char* key : {"layers_block_type", "layer_types"})
    if (const Node* list = find_set(config, key); list != nullptr && list->kind == NodeKind::list)
      add_listed_layers(parts, config.texts(key));
  if (find_set(config, "hybrid_override_pattern") != nullptr)
    add_listed_layers(parts, letters_of(config.text("hybrid_override_pattern", "")));
  if (const auto linear = config.object("linear_attn_config"))
    parts.push_back(share_text("linear attention", std::ssize(linear->integers("kda_layers")),
                               config.integer("num_hidden_layers", 0)));
  if (!parts.empty()) return;
  add_interval(parts, config, "full_attention_interval", "linear attention");
  add_interval(parts, config, "attn_layer_period", "mamba");
  if (!parts.empty()) return;
  for (const Node& member : config.members())
    for (const std::string_view prefix : kStatePrefixes)
      if (parts.empty() && member.key.starts_with(prefix) && find_set(config, member.key) != nullptr)
        parts.push_back("mamba layers" + in_brackets(member.key));
}

void add_experts_part(std::vector<std::string>& parts, const JsonFields& config) {
  for (const char* key : kExpertKeys) {
    const Node* experts = find_set(config, key);
    if (experts == nullptr) continue;
    const bool is_number = experts->is(ScalarType::integer);
    return parts.push_back((is_number ? experts->text + " " : "") + "routed experts" + in_brackets(key));
  }
}

// Of text that goes on, token by token.
[[nodiscard]] bool is_generator(std::string_view architecture) {
  constexpr std::array<std::string_view, 4> kEnds{"ForCausalLM", "ForConditionalGeneration", "LMHeadModel",
                                                  "ChatGLMModel"};
  return std::ranges::any_of(kEnds, [architecture](std::string_view end) { return architecture.ends_with(end); });
}

// Of layers or of tokens: what has as many entries as there are layers, and does not say that these differ.
[[nodiscard]] bool is_known_list(std::string_view key) {
  return key == "layer_types" || key == kAttnTypeList || key == kNoRopeLayers || key.find("token") != key.npos;
}

// A list with an entry for each layer says that they differ.
void add_unknown_lists(std::vector<std::string>& parts, const JsonFields& config) {
  const int num_layers = config.integer("num_hidden_layers", 0);
  for (const Node& member : config.members())
    if (num_layers > 1 && parts.empty() && member.kind == NodeKind::list && !is_known_list(member.key) &&
        std::ssize(member.children) == num_layers)
      parts.push_back("layers that differ" + in_brackets(shortened(printable(member.key), 40)));
}

struct Priced {
  const char* name;
  double parameters;  // in billions
  bool has_experts;
};

constexpr std::array kPriced{
    Priced{"qwen3-0.6b", 0.6, false},     Priced{"llama-3.2-3b", 3.2, false},  Priced{"llama-3-8b", 8, false},
    Priced{"qwen3-14b", 14.8, false},     Priced{"qwen3-32b", 32.8, false},    Priced{"llama-3-70b", 70.6, false},
    Priced{"llama-3.1-405b", 406, false}, Priced{"qwen3-30b-a3b", 30.5, true}, Priced{"mixtral-8x7b", 46.7, true},
    Priced{"mixtral-8x22b", 141, true},   Priced{"qwen3-235b-a22b", 235, true}};

// Of the layers' matrices, as far as its sizes say: attention as of MHA, and gated MLPs.
[[nodiscard]] double rough_billions(const JsonFields& config, double num_experts) {
  const double hidden = config.integer("hidden_size", 4096);
  const double layers = config.integer("num_hidden_layers", 32);
  const char* width_key =
      num_experts > 1 && config.has("moe_intermediate_size") ? "moe_intermediate_size" : "intermediate_size";
  const double width = config.integer(width_key, 4 * static_cast<int>(std::min(hidden, 1e6)));
  return layers * hidden * (4 * hidden + 3 * width * num_experts) / 1e9;
}

}  // namespace

std::vector<std::string> parts_beyond_dense(const JsonFields& config) {
  std::vector<std::string> parts;
  add_other_layers(parts, config);
  for (const Marker& marker : kMarkers)
    if (find_set(config, marker.key) != nullptr && (parts.empty() || !parts.back().starts_with(marker.part)))
      parts.push_back(marker.part + in_brackets(marker.key));
  add_experts_part(parts, config);
  add_unknown_lists(parts, config);
  return parts;
}

std::string other_task(const JsonFields& config) {
  const std::vector<std::string> names = config.texts("architectures");
  const auto code = config.object("auto_map");
  if (std::ranges::any_of(names, is_generator) || (code && code->has("AutoModelForCausalLM"))) return {};
  if (!names.empty()) return "another task than to continue text (" + shortened(printable(names.front()), 40) + ")";
  const std::string type = config.text("model_type", "");
  if (type.starts_with("rwkv")) return "recurrent layers of RWKV (model_type)";
  for (const char* encoder : {"bert", "electra", "vit", "clip", "siglip"})
    if (type.find(encoder) != type.npos) return "an encoder (model_type)";
  return {};
}

std::string nearest_priced_model(const JsonFields& config) {
  double num_experts = 1;
  for (const char* key : kExpertKeys)
    if (const Node* experts = find_set(config, key); experts != nullptr && experts->is(ScalarType::integer))
      num_experts = config.integer(key);
  const double wanted = std::log(std::max(1e-3, rough_billions(config, num_experts)));
  const Priced* nearest = nullptr;
  for (const Priced& each : kPriced) {
    if (each.has_experts != (num_experts > 1)) continue;
    const auto distance = [wanted](const Priced& model) { return std::abs(std::log(model.parameters) - wanted); };
    if (nearest == nullptr || distance(each) < distance(*nearest)) nearest = &each;
  }
  return nearest->name;
}

}  // namespace dculab
