#include "model/quantization_config.hpp"

#include <string>

#include "fields/printable_text.hpp"

namespace dculab {
namespace {

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

[[nodiscard]] std::string method_of(const JsonFields& fields) {
  const std::string method = text_of(fields, "quant_method", "method");
  if (method.empty() && fields.has("quant_algo"))
    fields.refuse("quant_algo", in_quotes(fields.text("quant_algo", "")) + " of ModelOpt is not supported");
  return method.empty() ? "gptq" : method;
}

// What a list of exceptions says of lm_head. Throws InputError where it names matrices of the layers: a price knows one
// format for all of them.
[[nodiscard]] bool excepts_head(const JsonFields& fields, const char* key) {
  bool head = false;
  for (const std::string& name : fields.texts(key)) {
    if (name.find("lm_head") != name.npos) head = true;
    if (name.find("_proj") != name.npos || name.find("self_attn") != name.npos)
      fields.refuse(key, "has " + in_quotes(name) + ": matrices of layers in several formats are not supported");
  }
  return head;
}

// Blocks of 128 x 128 weights share a scale, which adds 0.02 %: as good as none.
[[nodiscard]] StoredWeights read_fp8(const JsonFields& fields) {
  const std::string format = fields.text("fmt", "e4m3");
  if (format.find("e4m3") == std::string::npos && format.find("e5m2") == std::string::npos)
    fields.refuse("fmt", in_quotes(format) + " is not supported (e4m3, e5m2)");
  (void)excepts_head(fields, "modules_to_not_convert");  // lm_head is never FP8
  return {{format.find("e5m2") == std::string::npos ? Dtype::fp8_e4m3 : Dtype::fp8_e5m2, 0}};
}

// config_groups: {group_0: {weights: {num_bits, type, group_size, ...}}}
[[nodiscard]] StoredWeights read_compressed_tensors(const JsonFields& fields) {
  const auto groups = fields.object("config_groups");
  if (!groups || groups->members().empty()) fields.refuse("config_groups", "is missing");
  if (groups->members().size() > 1)
    fields.refuse("config_groups", "gives some matrices settings of their own, which is not supported");
  const auto group = groups->object(groups->members().front().key);
  const auto weights = group ? group->object("weights") : std::nullopt;
  if (!weights) groups->refuse(groups->members().front(), "has no weights");
  const int num_bits = weights->integer("num_bits");
  const int group_size = weights->integer("group_size", 0);
  const bool head = !excepts_head(fields, "ignore");
  if (weights->text("type", "int") == "float") {
    if (num_bits != 8) weights->refuse("num_bits", "must be 8 for floats, not " + std::to_string(num_bits));
    return {{Dtype::fp8_e4m3, 0}, head, head};
  }
  if (num_bits != 4 && num_bits != 8) weights->refuse("num_bits", "must be 4 or 8, not " + std::to_string(num_bits));
  return {{num_bits == 8 ? Dtype::int8 : Dtype::int4, group_size > 0 ? group_size : -1}, head, head};
}

}  // namespace

std::optional<StoredWeights> read_stored_weights(const JsonFields& config) {
  const auto fields = config.object("quantization_config");
  if (!fields) return std::nullopt;
  const std::string method = method_of(*fields);
  if (method == "fp8") return read_fp8(*fields);
  if (method == "compressed-tensors") return read_compressed_tensors(*fields);
  if (method != "gptq" && method != "awq")
    fields->refuse(
        fields->has("quant_method") ? "quant_method" : "method",
        in_quotes(method) + " is not supported (gptq, awq, fp8, compressed-tensors); use the F16 or BF16 checkpoint");
  const QuantizationConfig read = read_quantization(*fields);
  return StoredWeights{weight_format(read), read.lm_head};
}

QuantizationConfig read_quantization(const JsonFields& fields) {
  const char* key = fields.has("quant_method") ? "quant_method" : "method";
  const std::string method = method_of(fields);
  if (method == "gptq") return read_gptq(fields);
  if (method == "awq") return read_awq(fields);
  fields.refuse(key, in_quotes(method) + " is priced, not run (gptq and awq are); use the F16 or BF16 checkpoint");
}

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
  if (const auto fields = config.object("quantization_config")) return read_quantization(*fields);
  return std::nullopt;
}

}  // namespace dculab
