#include "model/model_config.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "fields/json_fields.hpp"
#include "fields/printable_text.hpp"
#include "model/families/families.hpp"
#include "model/model_problems.hpp"
#include "model/stored_weights.hpp"
#include "model/weight_shapes.hpp"

namespace dculab {
namespace {

struct Family {
  const char* model_type;
  void (*read)(const JsonFields& config, ModelShape& shape);
  // Where the configuration is silent: what the published models of the family are in, else F32, as in transformers.
  Dtype silent_dtype = Dtype::f32;
};

// The published configurations of BLOOM and gpt-oss do not say how wide the weights are that they leave unquantized.
constexpr Family kFamilies[] = {{"baichuan", read_baichuan},
                                {"bloom", read_bloom, Dtype::f16},
                                {"dculab_cla", read_cla},
                                {"deepseek_v2", read_deepseek_v2},
                                {"deepseek_v3", read_deepseek_v3},
                                {"deepseek_v4", read_deepseek_v4},
                                {"falcon", read_falcon},
                                {"gemma2", read_gemma2},
                                {"gemma3_text", read_gemma3_text},
                                {"gemma4_text", read_gemma4},
                                {"gemma4_unified_text", read_gemma4_unified},
                                {"glm4", read_glm4},
                                {"glm4_moe", read_glm4_moe},
                                {"gpt_neox", read_gpt_neox},
                                {"gpt_oss", read_gpt_oss, Dtype::bf16},
                                {"granite", read_granite},
                                {"internlm2", read_internlm2},
                                {"kimi_k2", read_deepseek_v3},
                                {"llama", read_llama},
                                {"llama4_text", read_llama4},
                                {"minimax_m2", read_minimax_m2},
                                {"mistral", read_mistral},
                                {"mixtral", read_mixtral},
                                {"olmo2", read_olmo2},
                                {"opt", read_opt},
                                {"phi3", read_phi3},
                                {"qwen2", read_qwen2},
                                {"qwen2_moe", read_qwen2_moe},
                                {"qwen2_5_vl", read_qwen2},
                                {"qwen2_5_vl_text", read_qwen2},
                                {"qwen2_vl", read_qwen2},
                                {"qwen2_vl_text", read_qwen2},
                                {"qwen3", read_qwen3},
                                {"qwen3_5_text", read_qwen3_5},
                                {"qwen3_5_moe_text", read_qwen3_5_moe},
                                {"qwen3_moe", read_qwen3_moe},
                                {"qwen3_next", read_qwen3_next},
                                {"qwen3_vl_moe_text", read_qwen3_moe},
                                {"qwen3_vl_text", read_qwen3},
                                {"starcoder2", read_starcoder2}};

// Of a text model inside of another: configurations that were saved by older releases leave out what is the default.
constexpr Family kFamiliesInside[] = {{"llama", read_llama_inside}, {"mistral", read_mistral_inside}};

// What the text model of a configuration is where that does not say. Source: transformers, their configuration classes.
struct TextOf {
  const char* model_type;
  const char* text;
};
constexpr TextOf kTexts[] = {{"idefics3", "llama"},   {"llava", "llama"},   {"llava_next", "llama"},
                             {"mistral3", "mistral"}, {"smolvlm", "llama"}, {"video_llava", "llama"}};

// The part of config.json that describes the decoder: of a model that also sees or hears, `text_config`.
struct Decoder {
  JsonFields fields;
  bool is_inside = false;
};

[[nodiscard]] Decoder decoder_of(const JsonFields& config) {
  const auto thinker = config.object("thinker_config");  // of models that also speak
  const JsonFields& place = thinker ? *thinker : config;
  for (const char* key : {"text_config", "llm_config", "language_config"})
    if (auto text = place.object(key); text && (text->has("hidden_size") || !place.has("hidden_size")))
      return {std::move(*text), true};
  return {place, thinker.has_value()};
}

[[nodiscard]] const Family* find_family(std::string_view type, bool is_inside) {
  const auto is_it = [type](const Family& family) { return type == family.model_type; };
  if (is_inside)
    if (const auto* found = std::ranges::find_if(kFamiliesInside, is_it); found != std::end(kFamiliesInside))
      return found;
  const auto* found = std::ranges::find_if(kFamilies, is_it);
  return found == std::end(kFamilies) ? nullptr : found;
}

// Of a nested configuration that does not say: what its outer one's class has, or "gemma3_text".
[[nodiscard]] std::string type_of(const JsonFields& config, const Decoder& decoder) {
  const std::string type = decoder.fields.text("model_type", "");
  if (!type.empty()) return type;
  std::string outer = config.text("model_type", "");
  if (outer.empty()) throw InputError(config.file(), "'model_type' is missing; is this a Hugging Face model?");
  for (const TextOf& each : kTexts)
    if (outer == each.model_type) return each.text;
  return find_family(outer + "_text", true) == nullptr ? outer : outer + "_text";
}

// Sizes without which nothing can be assumed.
[[nodiscard]] std::string missing_size(const JsonFields& config) {
  for (const auto& keys : {std::pair{"hidden_size", "hidden_size"},
                           {"num_hidden_layers", "num_layers"},
                           {"num_attention_heads", "num_attention_heads"},
                           {"intermediate_size", "ffn_hidden_size"},
                           {"vocab_size", "padded_vocab_size"}})
    if (!config.has(keys.first) && !config.has(keys.second)) return keys.first;
  return {};
}

void read_unknown(const JsonFields& config, const Decoder& decoder, const std::string& type, ModelShape& shape) {
  const JsonFields& place = decoder.fields.has("model_type") ? decoder.fields : config;
  std::string parts;
  for (const std::string& part : parts_beyond_dense(decoder.fields)) parts += (parts.empty() ? "" : ", ") + part;
  if (parts.empty()) parts = other_task(config);
  const std::string missing = missing_size(decoder.fields);
  if (parts.empty() && missing.empty()) return read_unknown_dense(decoder.fields, type, shape);
  const std::string why = parts.empty()
                              ? "is not known, and its config.json has no " + missing + ", so it cannot be predicted"
                              : "cannot be predicted: it has " + parts;
  place.refuse("model_type", in_quotes(type) + " " + why +
                                 "; nearest that can be predicted: " + nearest_priced_model(decoder.fields));
}

// Layers behind the last that predict further tokens: counted where speculation drafts with them.
void read_predictors(const JsonFields& config, ModelShape& shape) {
  for (const char* key : {"num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules"}) {
    if (!config.has(key) || config.integer(key, 0) <= 0) continue;
    shape.num_nextn_predict_layers = config.integer(key, 0);
    shape.notes.push_back(std::string(kUncountedPredictors) + " (" + key + ") are not counted");
    return;
  }
}

// What else the configuration describes, beside the text model.
[[nodiscard]] std::string uncounted_towers(const JsonFields& config) {
  const auto thinker = config.object("thinker_config");
  std::string names, keys;
  for (const auto& [key, name] : {std::pair{"vision_config", "vision"}, {"audio_config", "audio"}})
    if (config.has(key) || (thinker && thinker->has(key))) {
      names += (names.empty() ? "" : " and ") + std::string(name);
      keys += (keys.empty() ? "" : ", ") + std::string(key);
    }
  if (names.empty()) return {};
  return "the " + names + " part of the model (" + keys + ") is not counted: figures are of its text model alone";
}

// Of the weights; nothing where the configuration is silent.
[[nodiscard]] std::optional<Dtype> read_dtype(const JsonFields& config, const JsonFields& decoder) {
  for (const JsonFields& fields : {decoder, config})
    for (const char* key : {"dtype", "torch_dtype"}) {
      if (!fields.has(key)) continue;
      const std::string text = fields.text(key, "");
      if (const auto dtype = parse_dtype(text)) return *dtype;
      fields.refuse(key, in_quotes(text) + " is not a supported dtype (float32, float16, bfloat16)");
    }
  return std::nullopt;
}

// Sizes whose products overflow an int belong to no model.
void require_sane_widths(const JsonFields& config, const ModelShape& shape) {
  for (const LayerKind& kind : shape.kinds) {
    const Heads heads = kind.has_kv_heads() ? kind.gqa().heads : Heads{};
    const std::int64_t width = std::int64_t{3} * heads.num_attention_heads * heads.head_dim;
    if (width > std::numeric_limits<int>::max() / 2)
      config.refuse("num_attention_heads", "times head_dim is out of range");
    if (kind.mlp.intermediate_size > std::numeric_limits<int>::max() / 4)
      config.refuse("intermediate_size", "is out of range");
  }
}

// With the line of the first of the keys that stands in the decoder's part of the file, or else elsewhere in it.
[[noreturn]] void refuse_at(const JsonFields& config, const JsonFields& decoder, const ModelProblem& problem) {
  for (const JsonFields* place : {&decoder, &config})
    for (const std::string& key : problem.keys)
      if (const auto line = place->line_of(key)) throw InputError(config.file(), *line, problem.text);
  throw InputError(config.file(), problem.text);
}

// Groups must divide a row of every matrix, except those of bitsandbytes, which go on from row to row.
[[nodiscard]] std::vector<ModelProblem> group_problems(const ModelShape& shape) {
  const WeightFormat format = shape.layer_format();
  if (format.group_size < 1 || format.dtype == Dtype::nf4 || format.dtype == Dtype::fp4) return {};
  for (const LayerKind& kind : shape.kinds)
    for (const WeightShape& weight : layer_weights(shape, kind))
      if (weight.matrix_values() > 0 && shape.slot_format(weight.slot, kind, format) == format &&
          weight.columns % format.group_size != 0)
        return {{{"group_size", "quantization_config"},
                 "groups of " + std::to_string(format.group_size) + " weights do not divide the " +
                     std::to_string(weight.columns) + " columns of a matrix"}};
  return {};
}

}  // namespace

void set_quantization(ModelShape& shape, const QuantizationConfig& config) {
  shape.quantization = weight_format(config);
  shape.quantized_lm_head = config.lm_head;
}

ModelShape parse_model_shape(std::string text, const std::string& file, std::string name) {
  const JsonFields config(file, std::move(text));
  const Decoder decoder = decoder_of(config);
  std::string type = type_of(config, decoder);
  const bool is_grouped = type == kGroupedType;
  if (is_grouped) type = decoder.fields.text("grouped_model_type", "");
  const Family* family = find_family(type, decoder.is_inside);
  if (is_grouped && family == nullptr)
    decoder.fields.refuse("grouped_model_type", in_quotes(type) + " is not a family that is known");
  ModelShape shape;
  shape.name = std::move(name);
  const auto dtype = read_dtype(config, decoder.fields);
  shape.dtype = dtype.value_or(family == nullptr ? Dtype::bf16 : family->silent_dtype);
  if (family == nullptr)
    read_unknown(config, decoder, type, shape);
  else
    family->read(decoder.fields, shape);
  if (is_grouped) read_head_groups(decoder.fields, shape);
  if (family == nullptr && !dtype) shape.notes.back() += "; its config.json has no dtype: BF16 is assumed";
  // Older releases saved it inside alone, and newer ones false outside.
  if (!decoder.is_inside || !decoder.fields.flag("tie_word_embeddings", false))
    shape.tie_word_embeddings = config.flag("tie_word_embeddings", shape.tie_word_embeddings);
  if (std::string towers = uncounted_towers(config); !towers.empty()) shape.notes.push_back(std::move(towers));
  read_predictors(decoder.fields, shape);
  const bool is_outside = config.has("quantization_config");  // of text_config, where that is nested
  if (const auto stored = read_stored_weights(is_outside ? config : decoder.fields)) {
    shape.quantization = stored->format;
    shape.quantized_activations = stored->activations;
    shape.plain = stored->plain;
    shape.quantized_lm_head = stored->lm_head && !(stored->lm_head_unless_tied && shape.tie_word_embeddings);
  }
  require_sane_widths(decoder.fields, shape);
  for (const auto& found : {keyed_problems(shape), group_problems(shape)})
    if (!found.empty()) refuse_at(config, decoder.fields, found.front());
  return shape;
}

}  // namespace dculab
