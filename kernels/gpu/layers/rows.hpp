// How the lanes of a workgroup go over a row of numbers: eight at a time (16-byte loads) where they may, else one.
#pragma once

#include "kernels/gpu/numbers.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

inline constexpr int kWide = 8;  // numbers a lane takes at a time: 16 bytes of f16 or bf16, twice 16 bytes of f32

// Neighbouring numbers of a tensor, widened.
template <int kCount>
struct Numbers {
  float values[kCount];
  __device__ float& operator[](int i) { return values[i]; }
  __device__ const float& operator[](int i) const { return values[i]; }
};

template <int kCount, typename T>
__device__ __forceinline__ Numbers<kCount> load_packed(const void* data, std::int64_t index) {
  constexpr int kPacked = kCount * sizeof(T) > 16 ? 16 / sizeof(T) : kCount;
  Numbers<kCount> numbers;
  DCULAB_UNROLL
  for (int i = 0; i < kCount; i += kPacked) {
    const auto pack = load(reinterpret_cast<const Pack<T, kPacked>*>(static_cast<const T*>(data) + index + i));
    DCULAB_UNROLL
    for (int j = 0; j < kPacked; ++j) numbers[i + j] = to_float(pack[j]);
  }
  return numbers;
}

template <int kCount, typename T>
__device__ __forceinline__ void store_packed(void* data, std::int64_t index, const Numbers<kCount>& numbers) {
  constexpr int kPacked = kCount * sizeof(T) > 16 ? 16 / sizeof(T) : kCount;
  DCULAB_UNROLL
  for (int i = 0; i < kCount; i += kPacked) {
    Pack<T, kPacked> pack;
    DCULAB_UNROLL
    for (int j = 0; j < kPacked; ++j) pack[j] = from_float<T>(numbers[i + j]);
    store(reinterpret_cast<Pack<T, kPacked>*>(static_cast<T*>(data) + index + i), pack);
  }
}

// From value `index` of a tensor of f32, f16 or bf16. Precondition: data and index are multiples of the packs' size.
template <int kCount>
__device__ __forceinline__ Numbers<kCount> load_numbers(const void* data, Dtype dtype, std::int64_t index) {
  if (dtype == Dtype::f32) return load_packed<kCount, float>(data, index);
  if (dtype == Dtype::f16) return load_packed<kCount, Half>(data, index);
  return load_packed<kCount, Bf16>(data, index);
}

// To a tensor of f32 or f16.
template <int kCount>
__device__ __forceinline__ void store_numbers(void* data, Dtype dtype, std::int64_t index,
                                              const Numbers<kCount>& numbers) {
  if (dtype == Dtype::f32)
    store_packed<kCount, float>(data, index, numbers);
  else
    store_packed<kCount, Half>(data, index, numbers);
}

// How many leading numbers may be taken kWide at a time where a row, or a part of one, of each of `tensors` starts at
// a multiple of `stride` numbers. Null stands for a tensor that is not given.
template <typename... Pointers>
__device__ __forceinline__ int wide_part(int count, std::int64_t stride, const Pointers*... tensors) {
  const auto addresses = (reinterpret_cast<std::uintptr_t>(tensors) | ...);
  return addresses % 16 == 0 && stride % kWide == 0 ? count / kWide * kWide : 0;
}

template <int kValue>
struct Count {
  static constexpr int value = kValue;
};

// body(Count<kWide>, i) or body(Count<1>, i) for numbers i, i + 1, ... so that the lanes share [0, count).
template <int kThreads, typename Body>
__device__ __forceinline__ void for_each_number(int wide, int count, Body body) {
  for (int i = thread_index() * kWide; i < wide; i += kThreads * kWide) body(Count<kWide>{}, i);
  for (int i = wide + thread_index(); i < count; i += kThreads) body(Count<1>{}, i);
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
