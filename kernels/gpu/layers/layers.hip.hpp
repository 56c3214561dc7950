// The element-wise kernels of a layer: embedding, rotary embedding, activations, residual addition, soft cap.
#pragma once

#include "kernels/gpu/args.hpp"
#include "kernels/gpu/layers/rows.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

inline constexpr int kLayerThreads = 256;
// Numbers of a row that one workgroup serves: one wide step of each lane.
inline constexpr int kLayerPiece = kLayerThreads * kWide;

// Workgroup (token, piece of the row).
template <int kWave>
__global__ void __launch_bounds__(kLayerThreads) embedding_kernel(Embedding args) {
  const int token = workgroup_x();
  const int begin = workgroup_y() * kLayerPiece;
  const int count = smaller(args.width - begin, kLayerPiece);
  const std::int64_t from = static_cast<std::int64_t>(load(args.token_ids + token)) * args.width + begin;
  const std::int64_t to = static_cast<std::int64_t>(token) * args.width + begin;
  const int wide = wide_part(count, args.width, args.table.data, args.out.data);
  for_each_number<kLayerThreads>(wide, count, [&](auto numbers, int i) {
    constexpr int kCount = decltype(numbers)::value;
    auto values = load_numbers<kCount>(args.table.data, args.table.dtype, from + i);
    DCULAB_UNROLL
    for (int j = 0; j < kCount; ++j) values[j] *= args.scale;
    store_numbers<kCount>(args.out.data, args.out.dtype, to + i, values);
  });
}

// Rotates kCount pairs (x[at + j], x[at + half + j]) by the angles i + j of a position's cosines and sines.
template <int kCount>
__device__ __forceinline__ void rotate(const Output& x, std::int64_t at, int half, const float* cos_sin, int i) {
  const auto cosine = load_numbers<kCount>(cos_sin, Dtype::f32, i);
  const auto sine = load_numbers<kCount>(cos_sin, Dtype::f32, half + i);
  auto first = load_numbers<kCount>(x.data, x.dtype, at);
  auto second = load_numbers<kCount>(x.data, x.dtype, at + half);
  DCULAB_UNROLL
  for (int j = 0; j < kCount; ++j) {
    const float turned = first[j] * cosine[j] - second[j] * sine[j];
    second[j] = second[j] * cosine[j] + first[j] * sine[j];
    first[j] = turned;
  }
  store_numbers<kCount>(x.data, x.dtype, at, first);
  store_numbers<kCount>(x.data, x.dtype, at + half, second);
}

// Workgroup (token, piece of its pairs): pair i is pair i % half of head i / half, the query heads first.
template <int kWave>
__global__ void __launch_bounds__(kLayerThreads) rotary_embedding_kernel(RotaryEmbedding args) {
  const int token = workgroup_x();
  const int half = args.head_dim / 2;
  const int pairs = (args.num_heads + args.num_kv_heads) * half;
  const int begin = workgroup_y() * kLayerPiece;
  const int count = smaller(pairs - begin, kLayerPiece);
  const float* cos_sin = args.cos_sin + static_cast<std::int64_t>(load(args.positions + token)) * args.head_dim;
  const std::int64_t row = static_cast<std::int64_t>(token) * (args.num_heads + 2 * args.num_kv_heads) * args.head_dim;
  const int wide = wide_part(count, half, args.qkv.data, args.cos_sin);
  for_each_number<kLayerThreads>(wide, count, [&](auto numbers, int i) {
    const int head = (begin + i) / half, pair = (begin + i) % half;
    rotate<decltype(numbers)::value>(args.qkv, row + head * args.head_dim + pair, half, cos_sin, pair);
  });
}

// Workgroup (token, piece of its pairs), one pair a lane: pair i is pair i % half of head i / half.
template <int kWave>
__global__ void __launch_bounds__(kLayerThreads) part_rotary_embedding_kernel(PartRotaryEmbedding args) {
  const int token = workgroup_x();
  const int half = args.rotary_dim / 2;
  const int pairs = (args.num_heads + args.num_kv_heads) * half;
  const int index = workgroup_y() * kLayerThreads + thread_index();
  if (index >= pairs) return;
  const int head = index / half, pair = index % half;
  const float* cos_sin = args.cos_sin + static_cast<std::int64_t>(load(args.positions + token)) * args.rotary_dim;
  const std::int64_t at = token * args.stride + static_cast<std::int64_t>(head) * args.head_dim;
  const std::int64_t first_at = at + (args.neighbours ? 2 * pair : pair);
  const std::int64_t second_at = args.neighbours ? first_at + 1 : first_at + half;
  const float cosine = load(cos_sin + pair), sine = load(cos_sin + half + pair);
  auto first = load_numbers<1>(args.qkv.data, args.qkv.dtype, first_at);
  auto second = load_numbers<1>(args.qkv.data, args.qkv.dtype, second_at);
  const float turned = first[0] * cosine - second[0] * sine;
  second[0] = second[0] * cosine + first[0] * sine;
  first[0] = turned;
  store_numbers<1>(args.qkv.data, args.qkv.dtype, first_at, first);
  store_numbers<1>(args.qkv.data, args.qkv.dtype, second_at, second);
}

// out = activation(gate) * up. Workgroup (token, piece of the row).
template <typename Args, typename Activation>
__device__ __forceinline__ void multiply_by_gate(const Args& args, Activation activation) {
  const int token = workgroup_x();
  const int begin = workgroup_y() * kLayerPiece;
  const int count = smaller(args.width - begin, kLayerPiece);
  const std::int64_t to = static_cast<std::int64_t>(token) * args.width + begin;
  const std::int64_t gate_at = static_cast<std::int64_t>(token) * 2 * args.width + begin;
  const int wide = wide_part(count, args.width, args.gate_up.data, args.out.data);
  for_each_number<kLayerThreads>(wide, count, [&](auto numbers, int i) {
    constexpr int kCount = decltype(numbers)::value;
    const auto gate = load_numbers<kCount>(args.gate_up.data, args.gate_up.dtype, gate_at + i);
    auto values = load_numbers<kCount>(args.gate_up.data, args.gate_up.dtype, gate_at + args.width + i);
    DCULAB_UNROLL
    for (int j = 0; j < kCount; ++j) values[j] *= activation(gate[j]);
    store_numbers<kCount>(args.out.data, args.out.dtype, to + i, values);
  });
}

// silu(x) = x / (1 + e^-x).
template <int kWave>
__global__ void __launch_bounds__(kLayerThreads) silu_and_mul_kernel(SiluAndMul args) {
  multiply_by_gate(args, [](float gate) { return gate / (1.0F + fast_exp(-gate)); });
}

// erf: x * (1 + erf(x / sqrt 2)) / 2, through erfc, which does not cancel far below zero.
// tanh: x * (1 + tanh(a)) / 2 = x / (1 + e^-2a) with a = sqrt(2 / pi) * (x + 0.044715 x^3).
// Source: Hendrycks and Gimpel, arXiv:1606.08415.
__device__ __forceinline__ float gelu(float x, GeluKind kind) {
  if (kind == GeluKind::erf) return 0.5F * x * complementary_error_function(-0.70710678F * x);
  const float angle = 0.79788456F * (x + 0.044715F * x * x * x);
  return x / (1.0F + fast_exp(-2.0F * angle));
}

template <int kWave>
__global__ void __launch_bounds__(kLayerThreads) gelu_and_mul_kernel(GeluAndMul args) {
  multiply_by_gate(args, [&args](float gate) { return gelu(gate, args.kind); });
}

// Workgroup: a piece of all numbers.
template <int kWave>
__global__ void __launch_bounds__(kLayerThreads) residual_add_kernel(ResidualAdd args) {
  const std::int64_t begin = static_cast<std::int64_t>(workgroup_x()) * kLayerPiece;
  const int count = args.count - begin < kLayerPiece ? static_cast<int>(args.count - begin) : kLayerPiece;
  const int wide = wide_part(count, kLayerPiece, args.x.data, args.residual, args.out.data);
  for_each_number<kLayerThreads>(wide, count, [&](auto numbers, int i) {
    constexpr int kCount = decltype(numbers)::value;
    auto values = load_numbers<kCount>(args.residual, Dtype::f32, begin + i);
    if (args.x.data != nullptr) {
      const auto x = load_numbers<kCount>(args.x.data, args.x.dtype, begin + i);
      DCULAB_UNROLL
      for (int j = 0; j < kCount; ++j) values[j] += x[j];
      store_numbers<kCount>(args.residual, Dtype::f32, begin + i, values);
    }
    store_numbers<kCount>(args.out.data, args.out.dtype, begin + i, values);
  });
}

// tanh(a) = (1 - e^-2a) / (1 + e^-2a), from |a| so that nothing overflows. Small a: a - a^3 / 3, as what is left of the
// difference loses digits there.
__device__ __forceinline__ float tanh_of(float a) {
  const float size = a < 0 ? -a : a;
  if (size < 0.02F) return a - a * a * a * (1.0F / 3.0F);
  const float e = fast_exp(-2.0F * size);
  const float value = (1.0F - e) / (1.0F + e);
  return a < 0 ? -value : value;
}

// Workgroup: a piece of all numbers.
template <int kWave>
__global__ void __launch_bounds__(kLayerThreads) soft_cap_kernel(SoftCap args) {
  const std::int64_t begin = static_cast<std::int64_t>(workgroup_x()) * kLayerPiece;
  const int count = args.count - begin < kLayerPiece ? static_cast<int>(args.count - begin) : kLayerPiece;
  const int wide = wide_part(count, kLayerPiece, args.x.data);
  for_each_number<kLayerThreads>(wide, count, [&](auto numbers, int i) {
    constexpr int kCount = decltype(numbers)::value;
    auto values = load_numbers<kCount>(args.x.data, args.x.dtype, begin + i);
    DCULAB_UNROLL
    for (int j = 0; j < kCount; ++j) values[j] = args.cap * tanh_of(values[j] / args.cap);
    store_numbers<kCount>(args.x.data, args.x.dtype, begin + i, values);
  });
}

// Workgroup: a piece of all numbers.
template <int kWave>
__global__ void __launch_bounds__(kLayerThreads) gelu_kernel(Gelu args) {
  const std::int64_t begin = static_cast<std::int64_t>(workgroup_x()) * kLayerPiece;
  const int count = args.count - begin < kLayerPiece ? static_cast<int>(args.count - begin) : kLayerPiece;
  const int wide = wide_part(count, kLayerPiece, args.x.data, args.out.data);
  for_each_number<kLayerThreads>(wide, count, [&](auto numbers, int i) {
    constexpr int kCount = decltype(numbers)::value;
    auto values = load_numbers<kCount>(args.x.data, args.x.dtype, begin + i);
    DCULAB_UNROLL
    for (int j = 0; j < kCount; ++j) values[j] = gelu(values[j], args.kind);
    store_numbers<kCount>(args.out.data, args.out.dtype, begin + i, values);
  });
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
