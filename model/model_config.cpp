#include "model/model_config.hpp"

#include <limits>
#include <utility>

#include "core/error.hpp"
#include "fields/json_fields.hpp"
#include "fields/printable_text.hpp"
#include "model/families/families.hpp"

namespace dculab {
namespace {

struct Family {
  const char* model_type;
  void (*read)(const JsonFields& config, ModelShape& shape);
  Dtype silent_dtype = Dtype::f32;
};

// BLOOM's published configurations do not say that their weights are 16 bits wide.
constexpr Family kFamilies[] = {{"bloom", read_bloom, Dtype::f16},
                                {"falcon", read_falcon},
                                {"gemma2", read_gemma2},
                                {"gemma3_text", read_gemma3_text},
                                {"glm4", read_glm4},
                                {"glm4_moe", read_glm4_moe},
                                {"llama", read_llama},
                                {"mistral", read_mistral},
                                {"mixtral", read_mixtral},
                                {"olmo2", read_olmo2},
                                {"phi3", read_phi3},
                                {"qwen2", read_qwen2},
                                {"qwen2_moe", read_qwen2_moe},
                                {"qwen3", read_qwen3},
                                {"qwen3_moe", read_qwen3_moe}};

// The part of config.json that describes the decoder: of a model that also sees or hears, `text_config`.
JsonFields decoder_fields(const JsonFields& config) {
  if (config.has("hidden_size")) return config;
  return config.object("text_config").value_or(config);
}

// "gemma3_text" of a nested configuration that does not repeat it.
std::string type_of(const JsonFields& config, const JsonFields& decoder) {
  const std::string type = decoder.text("model_type", "");
  if (!type.empty()) return type;
  const std::string outer = config.text("model_type", "");
  if (outer.empty()) throw InputError(config.file(), "'model_type' is missing; is this a Hugging Face model?");
  return outer + "_text";
}

const Family& family_of(const JsonFields& config, const JsonFields& decoder) {
  const std::string type = type_of(config, decoder);
  std::string known;
  for (const Family& family : kFamilies) {
    if (type == family.model_type) return family;
    known += (known.empty() ? "" : ", ") + std::string(family.model_type);
  }
  config.refuse("model_type", in_quotes(type) + " is not supported (" + known + ")");
}

// Where the configuration is silent: what the published models of a family are in, else F32, as in transformers.
Dtype read_dtype(const JsonFields& config, const JsonFields& decoder, Dtype silent) {
  for (const JsonFields& fields : {decoder, config})
    for (const char* key : {"dtype", "torch_dtype"}) {
      if (!fields.has(key)) continue;
      const std::string text = fields.text(key, "");
      if (const auto dtype = parse_dtype(text)) return *dtype;
      fields.refuse(key, in_quotes(text) + " is not a supported dtype (float32, float16, bfloat16)");
    }
  return silent;
}

// Sizes whose products overflow an int belong to no model.
void require_sane_widths(const JsonFields& config, const ModelShape& shape) {
  for (const LayerKind& kind : shape.kinds) {
    const std::int64_t width =
        std::int64_t{3} * kind.attention.heads.num_attention_heads * kind.attention.heads.head_dim;
    if (width > std::numeric_limits<int>::max() / 2)
      config.refuse("num_attention_heads", "times head_dim is out of range");
    if (kind.mlp.intermediate_size > std::numeric_limits<int>::max() / 4)
      config.refuse("intermediate_size", "is out of range");
  }
}

}  // namespace

void set_quantization(ModelShape& shape, const QuantizationConfig& config) {
  shape.quantization = weight_format(config);
  shape.quantized_lm_head = config.lm_head;
}

ModelShape parse_model_shape(std::string text, const std::string& file, std::string name) {
  const JsonFields config(file, std::move(text)), decoder = decoder_fields(config);
  ModelShape shape;
  shape.name = std::move(name);
  const Family& family = family_of(config, decoder);
  shape.dtype = read_dtype(config, decoder, family.silent_dtype);
  family.read(decoder, shape);
  shape.tie_word_embeddings = config.flag("tie_word_embeddings", shape.tie_word_embeddings);
  if (const auto stored = read_stored_weights(config)) {
    shape.quantization = stored->format;
    shape.quantized_lm_head = stored->lm_head && !(stored->lm_head_unless_tied && shape.tie_word_embeddings);
  }
  require_sane_widths(decoder, shape);
  const auto found = problems(shape);
  if (!found.empty()) throw InputError(file, found.front());
  return shape;
}

}  // namespace dculab
