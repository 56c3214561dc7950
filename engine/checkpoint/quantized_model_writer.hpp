// A quantized model folder out of the folder it was made from: matrices in the format of Hugging Face's GPTQ
// checkpoints, scales of an FP8 KV cache as kv_scales.hpp has them, what KVQuant needs as kv_calibration_file.hpp does.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/checkpoint/kv_calibration.hpp"
#include "engine/checkpoint/quantization_record.hpp"
#include "kernels/quantized_matrix.hpp"

namespace dculab::engine {

struct QuantizedFolder {
  std::filesystem::path source;  // config.json, tokenizer and all tensors that are not quantized come from there
  std::optional<QuantizationRecord> record{};                        // absent: the matrices stay as they are
  std::map<std::string, const kernels::QuantizedMatrix*> modules{};  // by module: "model.layers.0.mlp.up_proj"
  std::map<std::string, std::vector<float>> changed{};               // tensors with other values, in their stored dtype
  std::map<std::string, float> kv_scales{};                          // tensors of one value, new or in place of others
  std::optional<KvCalibration> kv_calibration{};                     // a file of its own
};

// Writes the whole folder or nothing. Throws InputError.
void write_quantized_model(const QuantizedFolder& model, const std::filesystem::path& output);

}  // namespace dculab::engine
