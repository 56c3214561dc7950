// Products with quantized weights, as the GPU kernels have them. One struct per kernel; shapes beside each pointer,
// slowest dimension first.
#pragma once

#include <cstdint>

namespace dculab::kernels {

// A GPTQ int4 matrix as checkpoints store it: eight consecutive in-features per word, lowest nibble first.
// weight[k, n] = scales[group(k), n] * (q[k, n] - (zero[group(k), n] + zero_offset))
struct GptqWeightView {
  const std::uint32_t* qweight = nullptr;  // [in_features / 8, out_features]
  const std::uint32_t* qzeros = nullptr;   // [groups, out_features / 8], packed along out_features
  const std::uint16_t* scales = nullptr;   // [groups, out_features], F16
  const std::int32_t* g_idx = nullptr;     // [in_features] group of each row (act-order), or null: k / group_size
  int in_features = 0, out_features = 0;   // both multiples of 8
  int group_size = 128;                    // 32, 64, 128, or in_features (checkpoints write -1)
  int zero_offset = 1;                     // "gptq" (v1) checkpoints store zero - 1: 1; "gptq_v2": 0
};

struct GptqMatmulArgs {
  const float* x = nullptr;  // [m, in_features]
  GptqWeightView weight;
  float* y = nullptr;  // [m, out_features]
  int m = 0;
};

// W8A8: y[m, n] = x_scale[m] * w_scale[n] * sum over k of x[m, k] * w[n, k], summed in int32.
struct Int8MatmulArgs {
  const std::int8_t* x = nullptr;  // [m, k]
  const float* x_scale = nullptr;  // [m]
  const std::int8_t* w = nullptr;  // [n, k]
  const float* w_scale = nullptr;  // [n]
  float* y = nullptr;              // [m, n]
  int m = 0, n = 0, k = 0;         // k a multiple of 4
};

// x_q[m, k] = round(x[m, k] / x_scale[m]), x_scale[m] = max over k of |x[m, k]| / 127.
struct QuantizeRowsArgs {
  const float* x = nullptr;    // [m, k]
  std::int8_t* out = nullptr;  // [m, k]
  float* scale = nullptr;      // [m]
  int m = 0, k = 0;
};

}  // namespace dculab::kernels
