// Products with weights that are plain values, FP8 with scales, GPTQ int4 and int8.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "kernels/number_format.hpp"
#include "kernels/reference/reference_kernels.hpp"
#include "kernels/reference/stored_value.hpp"

namespace dculab::kernels::reference {
namespace {

// The index-th of the int4 values packed into words, lowest nibble first.
int nibble(const std::uint32_t* words, std::size_t stride, std::size_t index) {
  return static_cast<int>(words[index / 8 * stride] >> (4 * (index % 8)) & 0xFU);
}

// Weight [n, k] of a matrix with `columns` in-features.
double weight_at(const WeightView& weight, std::size_t columns, std::size_t n, std::size_t k) {
  const double value = load_value(weight.data, weight.dtype, n * columns + k);
  if (weight.dtype != Dtype::fp8_e4m3) return value;
  return value / Fp8Scales::kFactor * weight.scales.of_row(static_cast<int>(n))[k >> weight.scales.column_shift];
}

}  // namespace

void matmul(const MatmulArgs& args) {
  std::size_t out = 0;
  for (int row = 0; row < args.m; ++row) {
    const float* given = args.x + std::ptrdiff_t{row} * args.k;
    std::vector<float> x(given, given + args.k);
    if (args.activations == ActivationMode::bf16)
      for (float& value : x) value = f32_from_bf16(bf16_from_f32(value));
    for (int i = 0; i < args.num_weights; ++i) {
      const WeightView& weight = args.weights[static_cast<std::size_t>(i)];
      for (std::size_t n = 0; n < static_cast<std::size_t>(weight.rows); ++n) {
        const float* bias = args.biases[static_cast<std::size_t>(i)];
        double sum = bias == nullptr ? 0.0 : bias[n];
        const auto columns = static_cast<std::size_t>(args.k);
        for (std::size_t k = 0; k < columns; ++k) sum += double{x[k]} * weight_at(weight, columns, n, k);
        args.y[out++] = static_cast<float>(sum);
      }
    }
  }
}

double gptq_weight(const GptqWeightView& weight, int k, int n) {
  const auto width = static_cast<std::size_t>(weight.out_features);
  const auto group = static_cast<std::size_t>(weight.g_idx != nullptr ? weight.g_idx[k] : k / weight.group_size);
  const int q = nibble(weight.qweight + n, width, static_cast<std::size_t>(k));
  const int zero = nibble(weight.qzeros + group * (width / 8), 1, static_cast<std::size_t>(n));
  const double scale = f32_from_f16(weight.scales[group * width + static_cast<std::size_t>(n)]);
  return scale * (q - (zero + weight.zero_offset));
}

void gptq_matmul(const GptqMatmulArgs& args) {
  std::size_t out = 0;
  for (int row = 0; row < args.m; ++row) {
    const float* x = args.x + std::ptrdiff_t{row} * args.weight.in_features;
    for (int n = 0; n < args.weight.out_features; ++n) {
      double sum = 0;
      for (int k = 0; k < args.weight.in_features; ++k) sum += x[k] * gptq_weight(args.weight, k, n);
      args.y[out++] = static_cast<float>(sum);
    }
  }
}

void int8_matmul(const Int8MatmulArgs& args) {
  for (int row = 0; row < args.m; ++row) {
    for (int n = 0; n < args.n; ++n) {
      std::int32_t sum = 0;
      for (int k = 0; k < args.k; ++k) {
        sum += std::int32_t{args.x[std::ptrdiff_t{row} * args.k + k]} * args.w[std::ptrdiff_t{n} * args.k + k];
      }
      args.y[std::ptrdiff_t{row} * args.n + n] = static_cast<float>(double{args.x_scale[row]} * args.w_scale[n] * sum);
    }
  }
}

void quantize_rows(const QuantizeRowsArgs& args) {
  for (int row = 0; row < args.m; ++row) {
    const float* x = args.x + std::ptrdiff_t{row} * args.k;
    float largest = 0;
    for (int k = 0; k < args.k; ++k) largest = std::max(largest, std::abs(x[k]));
    const float scale = largest / 127.0F;
    args.scale[row] = scale;
    for (int k = 0; k < args.k; ++k) {
      const float rounded = scale == 0 ? 0.0F : std::nearbyint(x[k] / scale);
      args.out[std::ptrdiff_t{row} * args.k + k] = static_cast<std::int8_t>(std::clamp(rounded, -127.0F, 127.0F));
    }
  }
}

}  // namespace dculab::kernels::reference
