// RMSNorm (with the residual addition) and LayerNorm: one workgroup per token.
#pragma once

#include "kernels/gpu/args.hpp"
#include "kernels/gpu/numbers.hpp"
#include "kernels/gpu/wave.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

inline constexpr int kNormThreads = 256;

template <int kWave>
__global__ void __launch_bounds__(kNormThreads) rms_norm_kernel(RmsNorm args) {
  DCULAB_SHARED(WavePartials, partials);
  const std::int64_t row = static_cast<std::int64_t>(workgroup_x()) * args.width;
  float squares = 0;
  for (int i = thread_index(); i < args.width; i += kNormThreads) {
    float value = load(args.residual + row + i);
    if (args.x.data != nullptr) {
      value += load_number(args.x.data, args.x.dtype, row + i);
      store(args.residual + row + i, value);
    }
    squares += value * value;
  }
  squares = workgroup_sum<kWave, kNormThreads>(squares, partials);
  const float factor = reciprocal_sqrt(squares / static_cast<float>(args.width) + args.epsilon);
  for (int i = thread_index(); i < args.width; i += kNormThreads) {
    const float weight = load_number(args.weight.data, args.weight.dtype, i);
    store_number(args.out.data, args.out.dtype, row + i, load(args.residual + row + i) * factor * weight);
  }
}

template <int kWave>
__global__ void __launch_bounds__(kNormThreads) layer_norm_kernel(LayerNorm args) {
  DCULAB_SHARED(WavePartials, partials);
  const std::int64_t row = static_cast<std::int64_t>(workgroup_x()) * args.width;
  float sum = 0;
  for (int i = thread_index(); i < args.width; i += kNormThreads)
    sum += load_number(args.x.data, args.x.dtype, row + i);
  const float mean = workgroup_sum<kWave, kNormThreads>(sum, partials) / static_cast<float>(args.width);
  float squares = 0;  // of the distances: no cancellation
  for (int i = thread_index(); i < args.width; i += kNormThreads) {
    const float distance = load_number(args.x.data, args.x.dtype, row + i) - mean;
    squares += distance * distance;
  }
  squares = workgroup_sum<kWave, kNormThreads>(squares, partials);
  const float factor = reciprocal_sqrt(squares / static_cast<float>(args.width) + args.epsilon);
  for (int i = thread_index(); i < args.width; i += kNormThreads) {
    float value = (load_number(args.x.data, args.x.dtype, row + i) - mean) * factor;
    value *= load_number(args.weight.data, args.weight.dtype, i);
    if (args.bias.data != nullptr) value += load_number(args.bias.data, args.bias.dtype, i);
    store_number(args.out.data, args.out.dtype, row + i, value);
  }
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
