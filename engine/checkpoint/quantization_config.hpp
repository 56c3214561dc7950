// How the matrices of a model folder are quantized: read from and written to config.json and quantize_config.json.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "model/quantization_config.hpp"

namespace dculab::engine {

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
