// What a GPU kernel may use of its platform: one source, three builds.
//
//   hipcc            DCU and AMD, waves of 64             DCULAB_GPU_BUILD = hip_build
//   nvcc             NVIDIA, waves of 32                  DCULAB_GPU_BUILD = cuda_build
//   a C++ compiler   each lane a fibre, waves of either   DCULAB_GPU_BUILD = host_build
//
// Kernels are HIP: `template <int kWave, ...> __global__ void some_kernel(SomeArgs args)`. They reach global memory
// through load() and store(), shared memory through DCULAB_SHARED, and other lanes through the functions below; the
// host build records the former and checks the latter. Only this file and runtime_api.hpp name hip*
// or cuda*.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

#if defined(__HIPCC__) || defined(__HIP__)
#define DCULAB_GPU_HIP 1
#define DCULAB_GPU_BUILD hip_build
#include <hip/hip_runtime.h>
#elif defined(__CUDACC__)
#define DCULAB_GPU_CUDA 1
#define DCULAB_GPU_BUILD cuda_build
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#else
#define DCULAB_GPU_HOST 1
#define DCULAB_GPU_BUILD host_build
#include <cmath>

#include "kernels/gpu/host/workgroup.hpp"
#define __global__
#define __device__
#define __forceinline__ [[gnu::always_inline]] inline
#define __launch_bounds__(...)  // of hipcc and nvcc: see below
#endif

// __launch_bounds__(lanes, n): n is waves per SIMD to HIP's clang and workgroups per SM to nvcc. Both come to the same
// for workgroups of 256 lanes where waves have 64 and a compute unit 4 SIMDs: each SIMD gets one wave of a workgroup.

// Before a loop whose count is known when it is compiled; ROLLED: it stays a loop, to save registers.
#if DCULAB_GPU_HOST
#define DCULAB_UNROLL
#define DCULAB_ROLLED
#else
#define DCULAB_UNROLL _Pragma("unroll")
#define DCULAB_ROLLED _Pragma("unroll 1")
#endif

// Shared memory of a workgroup: DCULAB_SHARED(Type, name); contents are not defined at the start.
#if DCULAB_GPU_HOST
#define DCULAB_SHARED(Type, name)       \
  static constexpr char name##_tag = 0; \
  Type& name =                          \
      *static_cast<Type*>(::dculab::kernels::gpu::host::shared_variable(&name##_tag, sizeof(Type), alignof(Type)))
#else
#define DCULAB_SHARED(Type, name) __shared__ Type name
#endif

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

// ---- Where a lane is ----

#if DCULAB_GPU_HOST
inline int thread_index() { return host::lane_index().thread; }
inline int threads_per_workgroup() { return host::current_grid().threads; }
inline int workgroup_x() { return host::lane_index().workgroup_x; }
inline int workgroup_y() { return host::lane_index().workgroup_y; }
inline int workgroup_z() { return host::lane_index().workgroup_z; }
inline int workgroups_x() { return host::current_grid().x; }
#else
__device__ __forceinline__ int thread_index() { return static_cast<int>(threadIdx.x); }
__device__ __forceinline__ int threads_per_workgroup() { return static_cast<int>(blockDim.x); }
__device__ __forceinline__ int workgroup_x() { return static_cast<int>(blockIdx.x); }
__device__ __forceinline__ int workgroup_y() { return static_cast<int>(blockIdx.y); }
__device__ __forceinline__ int workgroup_z() { return static_cast<int>(blockIdx.z); }
__device__ __forceinline__ int workgroups_x() { return static_cast<int>(gridDim.x); }
#endif

template <int kWave>
__device__ __forceinline__ int lane_index() {
  return thread_index() % kWave;
}
// A value that is the same in all lanes of a wave, and the compiler is told so: what depends on it can live in scalar
// registers.
__device__ __forceinline__ int same_in_wave(int value) {
#if DCULAB_GPU_HIP
  return __builtin_amdgcn_readfirstlane(value);
#else
  return value;
#endif
}
template <int kWave>
__device__ __forceinline__ int wave_index() {
  return same_in_wave(thread_index() / kWave);
}

// ---- Meeting other lanes ----

// All lanes of the workgroup that have not left; shared memory written before is seen after.
__device__ __forceinline__ void barrier() {
#if DCULAB_GPU_HOST
  host::wait_for_workgroup();
#else
  __syncthreads();
#endif
}

// The same among the lanes of one wave.
__device__ __forceinline__ void wave_barrier() {
#if DCULAB_GPU_HOST
  (void)host::exchange(0, 0);
#elif DCULAB_GPU_HIP
  __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");
  __builtin_amdgcn_wave_barrier();
#else
  __syncwarp();
#endif
}

// The compiler moves no access to memory across this. It costs no instruction; between the parts of an unrolled loop it
// keeps the loads of all parts from being gathered at the front, where their results fill the registers.
__device__ __forceinline__ void keep_order() {
#if !DCULAB_GPU_HOST
  asm volatile("" ::: "memory");
#endif
}

// condition ? a : b, for what lanes hand to each other. The compiler of the host build may turn ?: into branches and
// copy the meeting that follows into both: the lanes would wait at different places. T has 4 bytes.
template <typename T>
__device__ __forceinline__ T choose(bool condition, T a, T b) {
  static_assert(sizeof(T) == 4);
#if DCULAB_GPU_HOST
  std::uint32_t mask = condition ? 0xFFFFFFFFU : 0U;
  asm volatile("" : "+r"(mask));
  return std::bit_cast<T>((std::bit_cast<std::uint32_t>(a) & mask) | (std::bit_cast<std::uint32_t>(b) & ~mask));
#else
  return condition ? a : b;
#endif
}

// The value of lane (own lane ^ mask). All lanes of the wave must take part; T has 4 bytes. mask < kWidth, a power of
// two, keeps the exchange within groups of kWidth lanes.
template <int kWave, typename T>
__device__ __forceinline__ T shuffle_xor(T value, int mask) {
  static_assert(sizeof(T) == 4);
#if DCULAB_GPU_HOST
  const std::uint64_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint64_t got = host::exchange(bits, lane_index<kWave>() ^ mask);
  return std::bit_cast<T>(static_cast<std::uint32_t>(got));
#elif DCULAB_GPU_HIP
  return __shfl_xor(value, mask, kWave);
#else
  return __shfl_xor_sync(0xFFFFFFFFU, value, mask, kWave);
#endif
}

// `value` is added to a counter in shared memory; returns what the counter was before.
__device__ __forceinline__ std::uint32_t add_shared(std::uint32_t& counter, std::uint32_t value) {
#if DCULAB_GPU_HOST
  const std::uint32_t before = counter;
  counter += value;
  return before;
#else
  return atomicAdd(&counter, value);
#endif
}

// The value of lane `source` of each group of kWidth neighbouring lanes (source counted within the group).
template <int kWave, int kWidth, typename T>
__device__ __forceinline__ T shuffle(T value, int source) {
  static_assert(sizeof(T) == 4 && kWave % kWidth == 0);
#if DCULAB_GPU_HOST
  const std::uint64_t bits = std::bit_cast<std::uint32_t>(value);
  const int lane = lane_index<kWave>() / kWidth * kWidth + source % kWidth;
  return std::bit_cast<T>(static_cast<std::uint32_t>(host::exchange(bits, lane)));
#elif DCULAB_GPU_HIP
  return __shfl(value, source, kWidth);
#else
  return __shfl_sync(0xFFFFFFFFU, value, source, kWidth);
#endif
}

// Whether `vote` is true in any lane of the wave. All lanes of the wave must take part.
__device__ __forceinline__ bool any_lane(bool vote) {
#if DCULAB_GPU_HOST
  return host::ballot(vote) != 0;
#elif DCULAB_GPU_HIP
  return __any(vote) != 0;
#else
  return __any_sync(0xFFFFFFFFU, vote) != 0;
#endif
}

// ---- Global memory ----

// kCount neighbouring values that are loaded or stored with one instruction: 1, 2, 4, 8 or 16 bytes.
template <typename T, int kCount>
struct alignas(sizeof(T) * kCount) Pack {
  static_assert(sizeof(T) * kCount <= 16);
  T values[kCount];
  __device__ T& operator[](int i) { return values[i]; }
  __device__ const T& operator[](int i) const { return values[i]; }
};

template <typename T>
__device__ __forceinline__ T load(const T* address) {
#if DCULAB_GPU_HOST
  host::note_access(address, sizeof(T), AccessKind::load);
#endif
  return *address;
}

template <typename T>
__device__ __forceinline__ void store(T* address, T value) {
#if DCULAB_GPU_HOST
  host::note_access(address, sizeof(T), AccessKind::store);
#endif
  *address = value;
}

// ---- Arithmetic ----

// e^x, of the hardware's own accuracy (about 2 ulp).
__device__ __forceinline__ float fast_exp(float x) {
#if DCULAB_GPU_HOST
  return std::exp(x);
#else
  return __expf(x);
#endif
}

__device__ __forceinline__ int count_bits(std::uint64_t bits) {
#if DCULAB_GPU_HOST
  return std::popcount(bits);
#else
  return __popcll(bits);
#endif
}

// 1 / x, of the hardware's own accuracy (about 1 ulp).
__device__ __forceinline__ float fast_reciprocal(float x) {
#if DCULAB_GPU_HOST
  return 1.0F / x;
#elif DCULAB_GPU_HIP
  return __builtin_amdgcn_rcpf(x);
#else
  return __fdividef(1.0F, x);
#endif
}

__device__ __forceinline__ float reciprocal_sqrt(float x) {
#if DCULAB_GPU_HOST
  return 1.0F / std::sqrt(x);
#else
  return rsqrtf(x);
#endif
}

__device__ __forceinline__ float round_to_even(float x) {
#if DCULAB_GPU_HOST
  return std::nearbyint(x);
#else
  return rintf(x);
#endif
}

__device__ __forceinline__ float complementary_error_function(float x) {
#if DCULAB_GPU_HOST
  return std::erfc(x);
#else
  return erfcf(x);
#endif
}

__device__ __forceinline__ float fused_multiply_add(float a, float b, float c) {
#if DCULAB_GPU_HOST
  return std::fma(a, b, c);
#else
  return fmaf(a, b, c);
#endif
}

__device__ __forceinline__ float larger(float a, float b) { return a > b ? a : b; }
__device__ __forceinline__ int smaller(int a, int b) { return a < b ? a : b; }

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
