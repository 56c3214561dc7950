#include "model/stored_weights.hpp"

#include <string>
#include <vector>

#include "fields/printable_text.hpp"
#include "model/plain_modules.hpp"
#include "model/quantization_config.hpp"

namespace dculab {
namespace {

void read_block(const JsonFields& fields, const char* key, StoredWeights& stored) {
  if (!fields.has(key)) return;
  const std::vector<int> sizes = fields.integers(key);
  if (sizes.size() != 2 || sizes[0] < 1 || sizes[1] < 1) fields.refuse(key, "must be two positive numbers");
  stored.block_rows = sizes[0], stored.block_columns = sizes[1];
}

// The scales of blocks of 128 x 128 add 0.02 %, those of rows as little: they are not counted. lm_head is never FP8.
[[nodiscard]] StoredWeights read_fp8(const JsonFields& fields) {
  const std::string format = fields.text("fmt", "e4m3");
  const bool is_e5m2 = format.find("e5m2") != format.npos;
  if (!is_e5m2 && format.find("e4m3") == format.npos)
    fields.refuse("fmt", in_quotes(format) + " is not supported (e4m3, e5m2)");
  if (fields.has("quantized_layers"))
    fields.refuse("quantized_layers", "gives some matrices settings of their own, which is not supported");
  // By either activation_scheme: static scales or those of the step.
  StoredWeights stored{.format = {is_e5m2 ? Dtype::fp8_e5m2 : Dtype::fp8_e4m3, 0},
                       .activations = is_e5m2 ? ActivationMode::exact : ActivationMode::fp8};
  stored.plain = read_plain_modules(fields, "modules_to_not_convert").parts;
  read_block(fields, "weight_block_size", stored);
  return stored;
}

[[nodiscard]] WeightFormat float_format(const JsonFields& weights, int num_bits, int group_size) {
  if (num_bits == 8) return {Dtype::fp8_e4m3, 0};
  if (num_bits != 4) weights.refuse("num_bits", "must be 8 or 4 for floats, not " + std::to_string(num_bits));
  if (group_size != kMxfp4Group)
    weights.refuse("group_size", "must be 32 for floats of 4 bits, as MXFP4 has it, not " + std::to_string(group_size));
  return {Dtype::mxfp4, kMxfp4Group, ScaleFormat::e8m0};
}

[[nodiscard]] bool is_float(const JsonFields& values) {
  const std::string type = values.text("type", "int");
  if (type != "int" && type != "float") values.refuse("type", in_quotes(type) + " is not supported (int, float)");
  return type == "float";
}

[[nodiscard]] WeightFormat integer_format(const JsonFields& weights, int num_bits, int group_size) {
  if (group_size < -1) weights.refuse("group_size", "must be positive, or -1 for a scale per row");
  if (num_bits != 4 && num_bits != 8) weights.refuse("num_bits", "must be 4 or 8, not " + std::to_string(num_bits));
  return {num_bits == 8 ? Dtype::int8 : Dtype::int4, group_size > 0 ? group_size : -1};
}

// None: of a checkpoint that quantizes its weights alone.
[[nodiscard]] ActivationMode read_activations(const JsonFields& group) {
  const auto inputs = group.has("input_activations") ? group.object("input_activations") : std::nullopt;
  if (!inputs) return ActivationMode::exact;
  if (const int num_bits = inputs->integer("num_bits"); num_bits != 8)
    inputs->refuse("num_bits", "must be 8 for activations, not " + std::to_string(num_bits));
  return is_float(*inputs) ? ActivationMode::fp8 : ActivationMode::int8;
}

// config_groups: {group_0: {weights: {num_bits, type, group_size, ...}, input_activations: the same, or null}}
[[nodiscard]] StoredWeights read_compressed_tensors(const JsonFields& fields) {
  if (const auto sparsity = fields.object("sparsity_config"))
    if (const std::string format = sparsity->text("format", "dense"); format != "dense")
      sparsity->refuse("format", in_quotes(format) + " is not supported: weights with zeros left out");
  const auto groups = fields.object("config_groups");
  if (!groups || groups->members().empty()) fields.refuse("config_groups", "is missing");
  if (groups->members().size() > 1)
    fields.refuse("config_groups", "gives some matrices settings of their own, which is not supported");
  const auto group = groups->object(groups->members().front().key);
  const auto weights = group ? group->object("weights") : std::nullopt;
  if (!weights) groups->refuse(groups->members().front(), "has no weights");
  const int num_bits = weights->integer("num_bits"), group_size = weights->integer("group_size", 0);
  const PlainModules plain = all_of(read_untargeted_modules(*group, "targets"), read_plain_modules(fields, "ignore"));
  StoredWeights stored{.format = is_float(*weights) ? float_format(*weights, num_bits, group_size)
                                                    : integer_format(*weights, num_bits, group_size),
                       .activations = read_activations(*group),
                       .lm_head = !plain.lm_head,
                       .lm_head_unless_tied = !plain.lm_head,
                       .plain = plain.parts};
  read_block(*weights, "block_structure", stored);
  return stored;
}

// Its weights are those of the experts alone, in transformers (integrations/mxfp4.py) as in vLLM.
[[nodiscard]] StoredWeights read_mxfp4(const JsonFields& fields) {
  if (read_plain_modules(fields, "modules_to_not_convert").parts.experts)
    fields.refuse("modules_to_not_convert", "names the experts, which are all that mxfp4 quantizes");
  return {.format = {Dtype::mxfp4, kMxfp4Group, ScaleFormat::e8m0},
          .plain = {.attention = true, .mlp = true, .shared_experts = true}};
}

[[nodiscard]] WeightFormat bits_and_bytes_format(const JsonFields& fields) {
  const auto is_set = [&fields](const std::string& key) {
    return fields.flag(key, false) || fields.flag("_" + key, false);
  };
  if (is_set("load_in_8bit") && is_set("load_in_4bit"))
    fields.refuse("load_in_8bit", "and load_in_4bit are both true, and only one can be");
  if (is_set("load_in_8bit")) return {Dtype::int8, -1, ScaleFormat::f32};
  if (!is_set("load_in_4bit")) fields.refuse("quant_method", "needs load_in_4bit or load_in_8bit");
  const std::string type = fields.text("bnb_4bit_quant_type", "fp4");
  if (type != "nf4" && type != "fp4")
    fields.refuse("bnb_4bit_quant_type", in_quotes(type) + " is not supported (nf4, fp4)");
  return {type == "nf4" ? Dtype::nf4 : Dtype::fp4, kBitsAndBytesGroup,
          fields.flag("bnb_4bit_use_double_quant", false) ? ScaleFormat::f32_of_bytes : ScaleFormat::f32};
}

// Without a list of modules to skip, the head stays as it is: get_modules_to_not_convert of transformers.
[[nodiscard]] StoredWeights read_bits_and_bytes(const JsonFields& fields) {
  constexpr const char* kSkipped = "llm_int8_skip_modules";
  const PlainModules plain = read_plain_modules(fields, kSkipped);
  const bool head = fields.has(kSkipped) && !plain.lm_head;
  return {.format = bits_and_bytes_format(fields), .lm_head = head, .lm_head_unless_tied = head, .plain = plain.parts};
}

}  // namespace

std::optional<StoredWeights> read_stored_weights(const JsonFields& config) {
  const auto fields = config.object("quantization_config");
  if (!fields) return std::nullopt;
  const std::string method = quantization_method(*fields);
  if (method == "fp8") return read_fp8(*fields);
  if (method == "compressed-tensors") return read_compressed_tensors(*fields);
  if (method == "mxfp4") return read_mxfp4(*fields);
  if (method == "bitsandbytes") return read_bits_and_bytes(*fields);
  if (method != "gptq" && method != "awq")
    fields->refuse(fields->has("quant_method") ? "quant_method" : "method",
                   in_quotes(method) +
                       " is not supported (gptq, awq, fp8, compressed-tensors, mxfp4, bitsandbytes); "
                       "use the F16 or BF16 checkpoint");
  const QuantizationConfig read = read_quantization(*fields);
  return StoredWeights{.format = weight_format(read), .lm_head = read.lm_head};
}

}  // namespace dculab
