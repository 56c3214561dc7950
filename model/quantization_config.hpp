// How a checkpoint's matrices are quantized: `quantization_config` of config.json.
#pragma once

#include <cstdint>
#include <optional>

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

// What the layers' matrices are stored in, and whether lm_head is too. A price needs no more.
struct StoredWeights {
  WeightFormat format;
  bool lm_head = false;
  bool lm_head_unless_tied = false;  // the file does not name lm_head: a head that is the embedding stays as it is
};

// Of a config.json, by any method that a price knows: gptq, awq, fp8, compressed-tensors with one scheme for all
// matrices. Nothing when the model is not quantized. Throws InputError for other methods.
[[nodiscard]] std::optional<StoredWeights> read_stored_weights(const JsonFields& config);

// What the engine reads of a config.json: gptq and awq. Nothing when the model is not quantized. Throws InputError for
// methods that are not supported.
[[nodiscard]] std::optional<QuantizationConfig> read_quantization_config(const JsonFields& config);

}  // namespace dculab
