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
};

constexpr Family kFamilies[] = {{"bloom", read_bloom}, {"falcon", read_falcon}, {"gemma2", read_gemma2}, {"gemma3_text", read_gemma3_text}, {"glm4", read_glm4}, {"llama", read_llama}, {"mistral", read_mistral}, {"olmo2", read_olmo2}, {"phi3", read_phi3}, {"qwen2", read_qwen2}, {"qwen3", read_qwen3}};

const Family& family_of(const JsonFields& config) {
  const std::string type = config.text("model_type", "");
  if (type.empty()) throw InputError(config.file(), "'model_type' is missing; is this a Hugging Face model?");
  std::string known;
  for (const Family& family : kFamilies) {
    if (type == family.model_type) return family;
    known += (known.empty() ? "" : ", ") + std::string(family.model_type);
  }
  config.refuse("model_type", in_quotes(type) + " is not supported (" + known + ")");
}

// Absent means F32, as in transformers.
Dtype read_dtype(const JsonFields& config) {
  const char* key = config.has("dtype") ? "dtype" : "torch_dtype";
  const std::string text = config.text(key, "float32");
  const auto dtype = parse_dtype(text);
  if (!dtype) config.refuse(key, in_quotes(text) + " is not a supported dtype (float32, float16, bfloat16)");
  return *dtype;
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
  const JsonFields config(file, std::move(text));
  ModelShape shape;
  shape.name = std::move(name);
  shape.dtype = read_dtype(config);
  family_of(config).read(config, shape);
  if (const auto quantization = read_quantization_config(config)) set_quantization(shape, *quantization);
  require_sane_widths(config, shape);
  const auto found = problems(shape);
  if (!found.empty()) throw InputError(file, found.front());
  return shape;
}

}  // namespace dculab
