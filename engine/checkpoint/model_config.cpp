#include "engine/checkpoint/model_config.hpp"

#include <limits>
#include <utility>

#include "core/error.hpp"
#include "engine/checkpoint/families/families.hpp"
#include "engine/checkpoint/json.hpp"
#include "engine/checkpoint/quantization_config.hpp"
#include "fields/printable_text.hpp"

namespace dculab::engine {
namespace {

constexpr int kMaxLayers = 10'000;
constexpr int kDefaultTopK = 50;  // transformers, generation/configuration_utils.py

struct Family {
  const char* model_type;
  void (*read)(const JsonFields& config, ModelShape& shape);
};

constexpr Family kFamilies[] = {{"llama", read_llama},
                                {"mistral", read_mistral},
                                {"qwen2", read_qwen2},
                                {"bloom", read_bloom},
                                {"falcon", read_falcon}};

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
  if (shape.num_layers() > kMaxLayers) config.refuse("num_hidden_layers", "is out of range");
}

GenerationConfig merge_generation(GenerationConfig result, const JsonFields& fields) {
  if (fields.has("eos_token_id")) result.eos_token_ids = fields.integers("eos_token_id");
  if (fields.has("bos_token_id")) result.bos_token_id = fields.integer("bos_token_id");
  if (!fields.flag("do_sample", false)) return result;
  result.sampling.temperature = fields.number("temperature", 1.0);
  result.sampling.top_k = fields.integer("top_k", kDefaultTopK);
  result.sampling.top_p = fields.number("top_p", 1.0);
  if (!(result.sampling.temperature >= 0)) fields.refuse("temperature", "must not be negative");
  if (result.sampling.top_k < 0) fields.refuse("top_k", "must not be negative");
  if (!(result.sampling.top_p > 0 && result.sampling.top_p <= 1)) fields.refuse("top_p", "must lie in (0, 1]");
  return result;
}

void quantize(const QuantizationConfig& config, ModelShape& shape) {
  shape.quantization = weight_format(config);
  shape.quantized_lm_head = config.lm_head;
}

}  // namespace

ModelShape parse_model_shape(std::string text, const std::string& file, std::string name) {
  const JsonFields config(file, std::move(text));
  ModelShape shape;
  shape.name = std::move(name);
  shape.dtype = read_dtype(config);
  family_of(config).read(config, shape);
  if (const auto quantization = read_quantization_config(config)) quantize(*quantization, shape);
  require_sane_widths(config, shape);
  const auto found = problems(shape);
  if (!found.empty()) throw InputError(file, found.front());
  return shape;
}

ModelShape read_model_shape(const std::filesystem::path& path) {
  const bool is_folder = std::filesystem::is_directory(path);
  const auto file = is_folder ? path / "config.json" : path;
  const auto folder = std::filesystem::absolute(file).lexically_normal().parent_path();
  ModelShape shape = parse_model_shape(read_text(file.string()), file.string(), folder.filename().string());
  if (is_folder && !shape.quantization)
    if (const auto quantization = read_quantization_config(path)) quantize(*quantization, shape);
  return shape;
}

GenerationConfig read_generation_config(const std::filesystem::path& folder) {
  GenerationConfig result;
  for (const char* name : {"config.json", "generation_config.json"}) {
    const std::string file = (folder / name).string();
    if (std::filesystem::exists(file)) result = merge_generation(result, JsonFields(file, read_text(file)));
  }
  return result;
}

}  // namespace dculab::engine
