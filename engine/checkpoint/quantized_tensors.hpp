// Quantized matrices out of a checkpoint and into one: qweight, qzeros, scales and g_idx of GPTQ, those of AWQ.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/checkpoint/safetensors.hpp"
#include "kernels/quantized_matrix.hpp"
#include "model/quantization_config.hpp"

namespace dculab::engine {

// A matrix to read: "model.layers.0.self_attn.q_proj" is the module of "...q_proj.qweight".
struct ModuleShape {
  std::string name;
  int rows = 0;     // out_features
  int columns = 0;  // in_features
};

// Throws InputError naming file and tensor when the groups do not divide the matrix, or its sizes do not fill words.
void require_packable(const Checkpoint& checkpoint, const ModuleShape& module, const QuantizationConfig& config);

// Throws InputError naming file and tensor: as require_packable() does, absent, of another shape or dtype, g_idx that
// names no group or fills them unequally.
[[nodiscard]] kernels::QuantizedMatrix read_quantized_matrix(const Checkpoint& checkpoint, const ModuleShape& module,
                                                             const QuantizationConfig& config);

// The four tensors of a matrix in one of the GPTQ formats.
struct GptqTensors {
  std::vector<std::uint32_t> qweight;  // [columns * bits / 32, rows]
  std::vector<std::uint32_t> qzeros;   // [groups, rows * bits / 32]
  std::vector<std::uint16_t> scales;   // [groups, rows], F16
  std::vector<std::int32_t> g_idx;     // [columns]
};

// Throws InputError when rows or columns do not fill whole words. Precondition: `format` is gptq, and no zero point is
// 0, or gptq_v2.
[[nodiscard]] GptqTensors to_gptq_tensors(const kernels::QuantizedMatrix& matrix, QuantizedFormat format);

// Values that fill whole words: rows and columns must be multiples of it.
[[nodiscard]] constexpr int packing_multiple(int bits) { return bits == 3 ? 32 : 32 / bits; }

}  // namespace dculab::engine
