// How quantized matrices are described in config.json and quantize_config.json, which Hugging Face's loaders read.
#pragma once

#include <string>

#include "model/quantization_config.hpp"

namespace dculab::engine {

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
