// RMSNorm and LayerNorm, with the residual addition: one workgroup per token.
#pragma once

#include "kernels/gpu/args.hpp"
#include "kernels/gpu/layers/rows.hpp"
#include "kernels/gpu/wave.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

inline constexpr int kNormThreads = 256;

// Adds x to the residual where it is given, and returns the sum of the lane's squares.
__device__ __forceinline__ float add_and_square(const RmsNorm& args, std::int64_t row, int wide) {
  float squares = 0;
  for_each_number<kNormThreads>(wide, args.width, [&](auto count, int i) {
    constexpr int kCount = decltype(count)::value;
    auto values = load_numbers<kCount>(args.residual, Dtype::f32, row + i);
    if (args.x.data != nullptr) {
      const auto x = load_numbers<kCount>(args.x.data, args.x.dtype, row + i);
      DCULAB_UNROLL
      for (int j = 0; j < kCount; ++j) values[j] += x[j];
      store_numbers<kCount>(args.residual, Dtype::f32, row + i, values);
    }
    DCULAB_UNROLL
    for (int j = 0; j < kCount; ++j) squares += values[j] * values[j];
  });
  return squares;
}

template <int kWave>
__global__ void __launch_bounds__(kNormThreads) rms_norm_kernel(RmsNorm args) {
  DCULAB_SHARED(WavePartials, partials);
  const std::int64_t row = static_cast<std::int64_t>(workgroup_x()) * args.width;
  const int wide = wide_part(args.width, args.width, args.x.data, args.residual, args.weight.data, args.out.data);
  const float squares = workgroup_sum<kWave, kNormThreads>(add_and_square(args, row, wide), partials);
  const float factor = reciprocal_sqrt(squares / static_cast<float>(args.width) + args.epsilon);
  for_each_number<kNormThreads>(wide, args.width, [&](auto count, int i) {
    constexpr int kCount = decltype(count)::value;
    auto values = load_numbers<kCount>(args.residual, Dtype::f32, row + i);
    const auto weight = load_numbers<kCount>(args.weight.data, args.weight.dtype, i);
    DCULAB_UNROLL
    for (int j = 0; j < kCount; ++j) values[j] *= factor * weight[j];
    store_numbers<kCount>(args.out.data, args.out.dtype, row + i, values);
  });
}

// A wave a head: workgroup (token, as many heads as it has waves).
template <int kWave>
__global__ void __launch_bounds__(kNormThreads) head_norm_kernel(HeadNorm args) {
  const int head = workgroup_y() * (kNormThreads / kWave) + wave_index<kWave>();
  if (head >= args.num_heads) return;
  const int lane = lane_index<kWave>();
  const std::int64_t at =
      static_cast<std::int64_t>(workgroup_x()) * args.stride + static_cast<std::int64_t>(head) * args.head_dim;
  float squares = 0;
  for (int i = lane; i < args.head_dim; i += kWave) {
    const auto value = load_numbers<1>(args.x.data, args.x.dtype, at + i);
    squares += value[0] * value[0];
  }
  squares = wave_sum<kWave>(squares);
  const float factor = reciprocal_sqrt(squares / static_cast<float>(args.head_dim) + args.epsilon);
  for (int i = lane; i < args.head_dim; i += kWave) {
    auto value = load_numbers<1>(args.x.data, args.x.dtype, at + i);
    const auto weight = load_numbers<1>(args.weight.data, args.weight.dtype, i);
    value[0] *= factor * weight[0];
    store_numbers<1>(args.x.data, args.x.dtype, at + i, value);
  }
}

// What is normed.
__device__ __forceinline__ Input normed_rows(const LayerNorm& args) {
  return args.residual == nullptr ? args.x : Input{args.residual, Dtype::f32};
}

// Adds what is given to the residual, and returns the sum of the lane's numbers of what is normed.
__device__ __forceinline__ float add_and_sum(const LayerNorm& args, std::int64_t row, int wide) {
  const Input x = normed_rows(args);
  float sum = 0;
  for_each_number<kNormThreads>(wide, args.width, [&](auto count, int i) {
    constexpr int kCount = decltype(count)::value;
    auto values = load_numbers<kCount>(x.data, x.dtype, row + i);
    bool is_changed = false;
    DCULAB_UNROLL
    for (const Input& added : args.added) {
      if (added.data == nullptr) continue;
      is_changed = true;
      const auto addends = load_numbers<kCount>(added.data, added.dtype, row + i);
      DCULAB_UNROLL
      for (int j = 0; j < kCount; ++j) values[j] += addends[j];
    }
    if (is_changed) store_numbers<kCount>(args.residual, Dtype::f32, row + i, values);
    DCULAB_UNROLL
    for (int j = 0; j < kCount; ++j) sum += values[j];
  });
  return sum;
}

// Mean and 1 / standard deviation of a row.
struct RowMoments {
  float mean, factor;
};

template <int kWave>
__device__ __forceinline__ RowMoments row_moments(const LayerNorm& args, std::int64_t row, int wide,
                                                  WavePartials& partials) {
  const auto width = static_cast<float>(args.width);
  const Input x = normed_rows(args);
  const float mean = workgroup_sum<kWave, kNormThreads>(add_and_sum(args, row, wide), partials) / width;
  float squares = 0;  // of the distances: no cancellation
  for_each_number<kNormThreads>(wide, args.width, [&](auto count, int i) {
    const auto values = load_numbers<decltype(count)::value>(x.data, x.dtype, row + i);
    DCULAB_UNROLL
    for (int j = 0; j < decltype(count)::value; ++j) squares += (values[j] - mean) * (values[j] - mean);
  });
  squares = workgroup_sum<kWave, kNormThreads>(squares, partials);
  return {mean, reciprocal_sqrt(squares / width + args.epsilon)};
}

template <int kWave>
__global__ void __launch_bounds__(kNormThreads) layer_norm_kernel(LayerNorm args) {
  DCULAB_SHARED(WavePartials, partials);
  const Input x = normed_rows(args);
  const std::int64_t row = static_cast<std::int64_t>(workgroup_x()) * args.width;
  const int wide = wide_part(args.width, args.width, x.data, args.added[0].data, args.added[1].data, args.weight.data,
                             args.bias.data, args.out.data);
  const RowMoments moments = row_moments<kWave>(args, row, wide, partials);
  for_each_number<kNormThreads>(wide, args.width, [&](auto count, int i) {
    constexpr int kCount = decltype(count)::value;
    auto values = load_numbers<kCount>(x.data, x.dtype, row + i);
    const auto weight = load_numbers<kCount>(args.weight.data, args.weight.dtype, i);
    DCULAB_UNROLL
    for (int j = 0; j < kCount; ++j) values[j] = (values[j] - moments.mean) * moments.factor * weight[j];
    if (args.bias.data != nullptr) {
      const auto bias = load_numbers<kCount>(args.bias.data, args.bias.dtype, i);
      DCULAB_UNROLL
      for (int j = 0; j < kCount; ++j) values[j] += bias[j];
    }
    store_numbers<kCount>(args.out.data, args.out.dtype, row + i, values);
  });
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
