#include "engine/checkpoint/model_config.hpp"

#include <limits>
#include <utility>

#include "core/error.hpp"
#include "engine/checkpoint/json.hpp"

namespace dculab::engine {
namespace {

// Defaults are those of transformers, models/llama/configuration_llama.py.
constexpr int kDefaultMaxPositionEmbeddings = 2048;
constexpr double kDefaultRmsNormEps = 1e-6;
constexpr double kDefaultRopeTheta = 10000.0;
constexpr int kMaxLayers = 10'000;
constexpr int kDefaultTopK = 50;  // transformers, generation/configuration_utils.py

// Mistral is Llama with a sliding window: the same model when the window never slides.
void require_llama(const JsonFields& config) {
  const std::string type = config.text("model_type", "");
  if (type.empty()) throw InputError(config.file(), "'model_type' is missing; is this a Hugging Face model?");
  if (type != "llama" && type != "mistral") config.refuse("model_type", "'" + type + "' is not supported (llama)");
  const int positions = config.integer("max_position_embeddings", kDefaultMaxPositionEmbeddings);
  if (type == "mistral" && config.integer("sliding_window", positions) < positions)
    config.refuse("sliding_window", "is shorter than max_position_embeddings: sliding windows are not supported");
  for (const char* bias : {"attention_bias", "mlp_bias"})
    if (config.flag(bias, false)) config.refuse(bias, "is true: layers with a bias are not supported");
  const std::string activation = config.text("hidden_act", "silu");
  if (activation != "silu") config.refuse("hidden_act", "'" + activation + "' is not supported (silu)");
}

// `rope_scaling` in older exports; newer ones nest it with rope_theta in `rope_parameters`.
RopeScaling read_rope_scaling(const JsonFields& rope) {
  const char* key = rope.has("rope_type") ? "rope_type" : "type";
  const std::string type = rope.text(key, "default");
  if (rope.number("partial_rotary_factor", 1.0) != 1.0) rope.refuse("partial_rotary_factor", "must be 1");
  RopeScaling scaling;
  if (type == "default") return scaling;
  if (type != "linear" && type != "llama3")
    rope.refuse(key, "'" + type + "' is not a supported RoPE scaling (default, linear, llama3)");
  scaling.kind = type == "linear" ? RopeScalingKind::linear : RopeScalingKind::llama3;
  scaling.factor = rope.number("factor");
  if (!(scaling.factor >= 1.0)) rope.refuse("factor", "must be at least 1");
  if (type == "linear") return scaling;
  scaling.low_freq_factor = rope.number("low_freq_factor");
  scaling.high_freq_factor = rope.number("high_freq_factor");
  scaling.original_max_position_embeddings = rope.integer("original_max_position_embeddings");
  if (!(scaling.low_freq_factor > 0 && scaling.low_freq_factor < scaling.high_freq_factor))
    rope.refuse("high_freq_factor", "must be larger than low_freq_factor, and both positive");
  if (scaling.original_max_position_embeddings < 1) rope.refuse("original_max_position_embeddings", "must be positive");
  return scaling;
}

void read_rope(const JsonFields& config, ModelShape& shape) {
  shape.rope_theta = config.number("rope_theta", kDefaultRopeTheta);
  if (const auto scaling = config.object("rope_scaling")) shape.rope_scaling = read_rope_scaling(*scaling);
  if (const auto parameters = config.object("rope_parameters")) {
    shape.rope_theta = parameters->number("rope_theta", shape.rope_theta);
    shape.rope_scaling = read_rope_scaling(*parameters);
  }
  if (!(shape.rope_theta > 1.0)) config.refuse("rope_theta", "must be larger than 1");
}

// Absent means F32, as in transformers.
Dtype read_dtype(const JsonFields& config) {
  const char* key = config.has("dtype") ? "dtype" : "torch_dtype";
  const std::string text = config.text(key, "float32");
  const auto dtype = parse_dtype(text);
  if (!dtype) config.refuse(key, "'" + text + "' is not a supported dtype (float32, float16, bfloat16)");
  return *dtype;
}

// Sizes whose products overflow an int belong to no model.
void require_sane_widths(const JsonFields& config, const ModelShape& shape) {
  const std::int64_t width = std::int64_t{3} * shape.num_attention_heads * shape.head_dim;
  if (width > std::numeric_limits<int>::max() / 2)
    config.refuse("num_attention_heads", "times head_dim is out of range");
  if (shape.intermediate_size > std::numeric_limits<int>::max() / 4)
    config.refuse("intermediate_size", "is out of range");
  if (shape.num_hidden_layers > kMaxLayers) config.refuse("num_hidden_layers", "is out of range");
}

int positive(const JsonFields& config, const char* key, int value) {
  if (value < 1) config.refuse(key, "must be positive, not " + std::to_string(value));
  return value;
}

int read_head_dim(const JsonFields& config, const ModelShape& shape) {
  if (config.has("head_dim")) return positive(config, "head_dim", config.integer("head_dim"));
  if (shape.hidden_size % shape.num_attention_heads != 0)
    config.refuse("hidden_size", "is not a multiple of num_attention_heads, and there is no head_dim");
  return shape.hidden_size / shape.num_attention_heads;
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

}  // namespace

ModelShape parse_model_shape(std::string text, const std::string& file, std::string name) {
  const JsonFields config(file, std::move(text));
  require_llama(config);
  const auto size = [&](const char* key) { return positive(config, key, config.integer(key)); };
  ModelShape shape;
  shape.name = std::move(name);
  shape.hidden_size = size("hidden_size");
  shape.intermediate_size = size("intermediate_size");
  shape.num_hidden_layers = size("num_hidden_layers");
  shape.num_attention_heads = size("num_attention_heads");
  shape.vocab_size = size("vocab_size");
  shape.num_key_value_heads =
      positive(config, "num_key_value_heads", config.integer("num_key_value_heads", shape.num_attention_heads));
  shape.head_dim = read_head_dim(config, shape);
  shape.max_position_embeddings = positive(config, "max_position_embeddings",
                                           config.integer("max_position_embeddings", kDefaultMaxPositionEmbeddings));
  shape.tie_word_embeddings = config.flag("tie_word_embeddings", false);
  shape.dtype = read_dtype(config);
  shape.rms_norm_eps = config.number("rms_norm_eps", kDefaultRmsNormEps);
  if (!(shape.rms_norm_eps >= 0)) config.refuse("rms_norm_eps", "must not be negative");
  read_rope(config, shape);
  require_sane_widths(config, shape);
  const auto found = problems(shape);
  if (!found.empty()) throw InputError(file, found.front());
  return shape;
}

ModelShape read_model_shape(const std::filesystem::path& path) {
  const bool is_folder = std::filesystem::is_directory(path);
  const auto file = is_folder ? path / "config.json" : path;
  const auto folder = std::filesystem::absolute(file).lexically_normal().parent_path();
  return parse_model_shape(read_text(file.string()), file.string(), folder.filename().string());
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
