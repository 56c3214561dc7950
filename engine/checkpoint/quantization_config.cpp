#include "engine/checkpoint/quantization_config.hpp"

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "engine/checkpoint/json.hpp"
#include "fields/json_text.hpp"
#include "fields/printable_text.hpp"

namespace dculab::engine {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kDefaultGroupSize = 128;

[[nodiscard]] bool is_served(int bits) { return bits == 2 || bits == 3 || bits == 4 || bits == 8; }

// The first of two spellings that is there: GPTQModel renamed some keys.
[[nodiscard]] std::string text_of(const JsonFields& fields, const char* key, const char* other) {
  return fields.has(key) ? fields.text(key, "") : fields.text(other, "");
}

[[nodiscard]] int read_group_size(const JsonFields& fields) {
  const int group_size = fields.integer("group_size", kDefaultGroupSize);
  if (group_size != -1 && group_size < 1) fields.refuse("group_size", "must be positive, or -1 for a scale per row");
  return group_size;
}

[[nodiscard]] QuantizationConfig read_gptq(const JsonFields& fields) {
  QuantizationConfig config;
  config.bits = fields.integer("bits");
  if (!is_served(config.bits)) fields.refuse("bits", "must be 2, 3, 4 or 8, not " + std::to_string(config.bits));
  config.group_size = read_group_size(fields);
  config.desc_act = fields.flag("desc_act", false);
  config.sym = fields.flag("sym", true);
  const char* key = fields.has("checkpoint_format") ? "checkpoint_format" : "format";
  const std::string format = fields.text(key, "gptq");
  if (format != "gptq" && format != "gptq_v2")
    fields.refuse(key, in_quotes(format) + " is not supported (gptq, gptq_v2); convert the checkpoint to one of them");
  config.format = format == "gptq" ? QuantizedFormat::gptq : QuantizedFormat::gptq_v2;
  if (fields.flag("is_marlin_format", false))
    fields.refuse("is_marlin_format", "is true: weights repacked for one GPU kernel are not supported");
  config.lm_head = fields.flag("lm_head", false);
  if (fields.text("pack_dtype", "int32") != "int32") fields.refuse("pack_dtype", "must be int32");
  if (const auto dynamic = fields.object("dynamic"); dynamic && !dynamic->members().empty())
    fields.refuse("dynamic", "gives some matrices settings of their own, which is not supported");
  return config;
}

[[nodiscard]] QuantizationConfig read_awq(const JsonFields& fields) {
  QuantizationConfig config;
  config.format = QuantizedFormat::awq;
  config.bits = fields.integer("bits");
  if (config.bits != 4) fields.refuse("bits", "must be 4 for AWQ, not " + std::to_string(config.bits));
  config.group_size = read_group_size(fields);
  config.sym = false;
  const char* key = fields.has("version") ? "version" : "format";
  const std::string version = fields.text(key, "gemm");
  if (version != "gemm" && version != "GEMM") fields.refuse(key, in_quotes(version) + " is not supported (gemm)");
  if (!fields.flag("zero_point", true))
    fields.refuse("zero_point", "is false: AWQ without zero points is not supported");
  return config;
}

[[nodiscard]] QuantizationConfig read_fields(const JsonFields& fields) {
  const char* key = fields.has("quant_method") ? "quant_method" : "method";
  const std::string method = text_of(fields, "quant_method", "method");
  if (method.empty() || method == "gptq") return read_gptq(fields);
  if (method == "awq") return read_awq(fields);
  fields.refuse(key, in_quotes(method) + " is not supported (gptq, awq); use the F16 or BF16 checkpoint");
}

[[nodiscard]] Json to_json(const QuantizationRecord& record) {
  const QuantizationConfig& config = record.config;
  return {{"quant_method", "gptq"},
          {"bits", config.bits},
          {"group_size", config.group_size},
          {"desc_act", config.desc_act},
          {"sym", config.sym},
          {"damp_percent", record.damp_percent},
          {"true_sequential", record.true_sequential},
          {"static_groups", false},
          {"lm_head", config.lm_head},
          {"checkpoint_format", name(config.format)},
          {"pack_dtype", "int32"},
          {"meta", {{"quantizer", {"dculab:" + record.method}}}}};
}

}  // namespace

const char* name(QuantizedFormat format) {
  switch (format) {
    case QuantizedFormat::gptq:
      return "gptq";
    case QuantizedFormat::gptq_v2:
      return "gptq_v2";
    case QuantizedFormat::awq:
      return "awq";
  }
  return "?";
}

WeightFormat weight_format(const QuantizationConfig& config) {
  const Dtype dtype = config.bits == 8   ? Dtype::int8
                      : config.bits == 4 ? Dtype::int4
                      : config.bits == 3 ? Dtype::int3
                                         : Dtype::int2;
  return {dtype, config.group_size};
}

std::optional<QuantizationConfig> read_quantization_config(const JsonFields& config) {
  if (const auto fields = config.object("quantization_config")) return read_fields(*fields);
  return std::nullopt;
}

std::string quantization_file(const std::filesystem::path& folder) {
  const std::string config = (folder / "config.json").string();
  const std::string beside = (folder / "quantize_config.json").string();
  const bool is_beside =
      std::filesystem::exists(beside) && !JsonFields(config, read_text(config)).object("quantization_config");
  return is_beside ? beside : config;
}

std::optional<QuantizationConfig> read_quantization_config(const std::filesystem::path& folder) {
  const std::string file = quantization_file(folder);
  const JsonFields fields(file, read_text(file));
  const bool is_config = std::filesystem::path(file).filename() == "config.json";
  return is_config ? read_quantization_config(fields) : read_fields(fields);
}

std::string with_quantization_config(const std::string& config_json, const QuantizationRecord& record) {
  Node config = parse_json("config.json", 1, config_json);
  set_member(config, "quantization_config", parse_json("quantization_config", 1, to_json(record).dump()));
  return json_text(config, 2) + "\n";
}

std::string quantize_config_json(const QuantizationRecord& record) { return to_json(record).dump(2) + "\n"; }

}  // namespace dculab::engine
