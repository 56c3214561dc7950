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

}  // namespace

std::string quantization_method(const JsonFields& fields) {
  const std::string method = text_of(fields, "quant_method", "method");
  if (method.empty() && fields.has("quant_algo"))
    fields.refuse("quant_algo", in_quotes(fields.text("quant_algo", "")) + " of ModelOpt is not supported");
  // GPTQ's first files did not say their method.
  if (method.empty() && !fields.has("bits")) fields.refuse("quant_method", "is missing");
  return method.empty() ? "gptq" : method;
}

QuantizationConfig read_quantization(const JsonFields& fields) {
  const char* key = fields.has("quant_method") ? "quant_method" : "method";
  const std::string method = quantization_method(fields);
  if (method == "gptq") return read_gptq(fields);
  if (method == "awq") return read_awq(fields);
  fields.refuse(key,
                in_quotes(method) +
                    " is predicted, not run (gptq, awq and weights of F8_E4M3 are); use the F16 or BF16 checkpoint");
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
