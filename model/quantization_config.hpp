// How GPTQ and AWQ quantized a checkpoint's matrices: `quantization_config` of config.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/dtype.hpp"
#include "fields/json_fields.hpp"

namespace dculab {

// How integers lie in the tensors (docs/reference/quantization.md).
enum class QuantizedFormat : std::uint8_t {
  gptq,     // AutoGPTQ: packed along in-features; zero points are stored less 1
  gptq_v2,  // the same, zero points as they are
  awq,      // AutoAWQ's "gemm": packed along out-features in the order 0 2 4 6 1 3 5 7
};

[[nodiscard]] const char* name(QuantizedFormat format);

struct QuantizationConfig {
  QuantizedFormat format = QuantizedFormat::gptq;
  int bits = 4;          // 2, 3, 4 or 8; AWQ: 4
  int group_size = 128;  // in-features that share a scale; -1 = all of them
  bool desc_act = false;
  bool sym = true;
  bool lm_head = false;  // it is quantized like the layers' matrices
};

// What a plan is made with; 2 and 3 bits have names of their own there.
[[nodiscard]] WeightFormat weight_format(const QuantizationConfig& config);

// The object itself, which may also stand in a file of its own, quantize_config.json. Throws InputError for methods
// that are not supported.
[[nodiscard]] QuantizationConfig read_quantization(const JsonFields& fields);

// `quant_method` of a quantization_config, by its older names too; AutoGPTQ's is "gptq" where it has none. Throws
// InputError for ModelOpt's, which has another layout.
[[nodiscard]] std::string quantization_method(const JsonFields& fields);

// What a config.json says of gptq and awq. Nothing when the model is not quantized. Throws InputError for
// methods that are not supported.
[[nodiscard]] std::optional<QuantizationConfig> read_quantization_config(const JsonFields& config);

}  // namespace dculab
