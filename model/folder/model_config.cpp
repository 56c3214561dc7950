#include "model/folder/model_config.hpp"

#include "fields/json_fields.hpp"
#include "fields/printable_text.hpp"
#include "model/folder/gguf_config.hpp"
#include "model/folder/gguf_header.hpp"
#include "model/folder/model_files.hpp"
#include "model/model_config.hpp"

namespace dculab {
namespace {

constexpr int kDefaultTopK = 50;  // transformers, generation/configuration_utils.py

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

// ModelOpt writes the weights' format beside config.json, which need not repeat it.
void read_modelopt_format(const std::filesystem::path& folder, ModelShape& shape) {
  const std::string file = (folder / "hf_quant_config.json").string();
  if (!std::filesystem::exists(file)) return;
  const auto fields = JsonFields(file, read_model_text(file)).object("quantization");
  if (!fields || !fields->has("quant_algo")) return;
  const std::string format = fields->text("quant_algo", "");
  if (format == "FP8")
    shape.quantization = WeightFormat{Dtype::fp8_e4m3, 0};
  else
    shape.notes.push_back("hf_quant_config.json says that the weights are " + in_quotes(format) +
                          ", which is not supported: they are taken for " + std::string(name(shape.dtype)) +
                          ", as config.json has it");
}

// config.json, or quantize_config.json when config.json does not say.
std::string quantization_file(const std::filesystem::path& folder) {
  const std::string config = (folder / "config.json").string();
  const std::string beside = (folder / "quantize_config.json").string();
  const bool is_beside =
      std::filesystem::exists(beside) && !JsonFields(config, read_model_text(config)).object("quantization_config");
  return is_beside ? beside : config;
}

}  // namespace

std::optional<QuantizationConfig> read_quantization_config(const std::filesystem::path& folder) {
  const std::string file = quantization_file(folder);
  const JsonFields fields(file, read_model_text(file));
  const bool is_config = std::filesystem::path(file).filename() == "config.json";
  return is_config ? read_quantization_config(fields) : read_quantization(fields);
}

namespace {

[[nodiscard]] ModelShape read_gguf_shape(const std::filesystem::path& path) {
  const GgufHeader header = read_gguf_header(path.string());
  ModelShape shape = parse_model_shape(gguf_config(header, path.string()), path.string(), path.stem().string());
  set_gguf_weights(header, shape);
  return shape;
}

}  // namespace

ModelShape read_model_shape(const std::filesystem::path& path) {
  if (path.extension() == kGgufSuffix) return read_gguf_shape(path);
  const bool is_folder = std::filesystem::is_directory(path);
  const auto file = is_folder ? path / "config.json" : path;
  const auto folder = std::filesystem::absolute(file).lexically_normal().parent_path();
  ModelShape shape = parse_model_shape(read_model_text(file.string()), file.string(), folder.filename().string());
  if (is_folder && !shape.quantization)
    if (const auto quantization = read_quantization_config(path)) set_quantization(shape, *quantization);
  if (is_folder && !shape.quantization) read_modelopt_format(path, shape);
  return shape;
}

GenerationConfig read_generation_config(const std::filesystem::path& folder) {
  GenerationConfig result;
  for (const char* name : {"config.json", "generation_config.json"}) {
    const std::string file = (folder / name).string();
    if (std::filesystem::exists(file)) result = merge_generation(result, JsonFields(file, read_model_text(file)));
  }
  return result;
}

}  // namespace dculab
