// How a checkpoint's matrices are quantized: `quantization_config` of config.json, or quantize_config.json beside it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "core/dtype.hpp"

namespace dculab::engine {

class JsonFields;

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

// Of a config.json. Nothing when the model is not quantized. Throws InputError for methods that are not supported.
[[nodiscard]] std::optional<QuantizationConfig> read_quantization_config(const JsonFields& config);

// Of a model folder: config.json, or quantize_config.json when config.json does not say.
[[nodiscard]] std::optional<QuantizationConfig> read_quantization_config(const std::filesystem::path& folder);

// The file of `folder` that read_quantization_config() takes it from, for messages.
[[nodiscard]] std::string quantization_file(const std::filesystem::path& folder);

// The JSON object that Hugging Face's loaders read; `damp` and `true_sequential` say how it was made.
struct QuantizationRecord {
  QuantizationConfig config;
  double damp_percent = 0;
  bool true_sequential = false;
  std::string method;  // "gptq", "rtn", ...: which quantizer of this program
};

// config.json's text with `quantization_config`, and the text of quantize_config.json.
[[nodiscard]] std::string with_quantization_config(const std::string& config_json, const QuantizationRecord& record);
[[nodiscard]] std::string quantize_config_json(const QuantizationRecord& record);

}  // namespace dculab::engine
