// Matrix cores: one instruction multiplies two small matrices that the lanes of a wave hold between them.
//
// D[i][j] += sum over k of A[i][k] * B[k][j], values of 16 bits, sums in F32. Sides of 32 (k: 8) and 16 (k: 16). A lane
// holds four neighbours along k of one row of A and of one column of B, and runs of four neighbouring rows of a column
// of D. gfx908 and gfx90a have the instructions (V_MFMA_F32_...); other targets run the kernels of vector units. The
// host build has them where it is asked to (host/matrix_core.hpp).
//
// gfx90a takes subnormal values of F16 and BF16 for 0, as its dot products do.
#pragma once

#include "kernels/gpu/numbers.hpp"

#if DCULAB_GPU_HOST
#include "kernels/gpu/host/matrix_core.hpp"
#endif

// Compilers of DCUs: cmake/DculabHip.cmake asks whether they know the instructions.
#if DCULAB_GPU_HIP && (defined(__gfx908__) || defined(__gfx90a__) || (defined(__gfx928__) && DCULAB_MFMA_GFX928) || \
                       (defined(__gfx936__) && DCULAB_MFMA_GFX936))
#define DCULAB_GPU_MFMA 1
#endif

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

// Whether the target that is compiled for has matrix cores; on the host every launch says.
enum class MatrixCores : std::uint8_t { absent, present, as_launched };
#if DCULAB_GPU_HOST
inline constexpr MatrixCores kMatrixCores = MatrixCores::as_launched;
#elif DCULAB_GPU_MFMA
inline constexpr MatrixCores kMatrixCores = MatrixCores::present;
#else
inline constexpr MatrixCores kMatrixCores = MatrixCores::absent;
#endif

__device__ __forceinline__ bool has_matrix_cores() {
#if DCULAB_GPU_HOST
  return host::running.has_matrix_cores;
#else
  return kMatrixCores == MatrixCores::present;
#endif
}

inline constexpr int kMatrixLanes = 64;

// Of a wave, also when the workgroup has several.
__device__ __forceinline__ int matrix_lane() { return thread_index() % kMatrixLanes; }

// Four values along k of a row of A, or of a column of B.
struct alignas(8) MatrixOperand {
  std::uint32_t words[2];
};

template <int kSide>
inline constexpr int kMatrixDepth = 256 / kSide;

// Which row of A, or column of B, a lane holds, and its first place along k.
template <int kSide>
__device__ __forceinline__ int operand_row() {
  return matrix_lane() % kSide;
}
template <int kSide>
__device__ __forceinline__ int operand_place() {
  return matrix_lane() / kSide * 4;
}

// The column of D that a lane holds is operand_row(); the row of the first of its run-th four sums:
template <int kSide>
inline constexpr int kSumRuns = kSide* kSide / kMatrixLanes / 4;
template <int kSide>
__device__ __forceinline__ int sum_row(int run) {
  return run * 4 * (kMatrixLanes / kSide) + operand_place<kSide>();
}

#if DCULAB_GPU_HIP
template <int kSide>
using MatrixSums = float __attribute__((ext_vector_type(kSide * kSide / kMatrixLanes)));
#else
template <int kSide>
struct MatrixSums {
  float values[kSide * kSide / kMatrixLanes];
  __device__ float& operator[](int i) { return values[i]; }
  __device__ const float& operator[](int i) const { return values[i]; }
};
#endif

template <int kSide>
__device__ __forceinline__ MatrixSums<kSide> no_sums() {
  MatrixSums<kSide> sums;
  DCULAB_UNROLL
  for (int i = 0; i < 4 * kSumRuns<kSide>; ++i) sums[i] = 0;
  return sums;
}

#if DCULAB_GPU_MFMA
template <int kSide>
__device__ __forceinline__ MatrixSums<kSide> multiply_words(MatrixOperand a, MatrixOperand b, MatrixSums<kSide> sums,
                                                            Half) {
  using Four = _Float16 __attribute__((ext_vector_type(4)));
  const Four left = __builtin_bit_cast(Four, a), right = __builtin_bit_cast(Four, b);
  if constexpr (kSide == 32)
    return __builtin_amdgcn_mfma_f32_32x32x8f16(left, right, sums, 0, 0, 0);
  else
    return __builtin_amdgcn_mfma_f32_16x16x16f16(left, right, sums, 0, 0, 0);
}

#if defined(__gfx908__)
// An instruction takes two values a lane: which k they stand for does not matter, as it is the same in A and B.
template <int kSide>
__device__ __forceinline__ MatrixSums<kSide> multiply_words(MatrixOperand a, MatrixOperand b, MatrixSums<kSide> sums,
                                                            Bf16) {
  using Two = short __attribute__((ext_vector_type(2)));
  DCULAB_UNROLL
  for (int i = 0; i < 2; ++i) {
    const Two left = __builtin_bit_cast(Two, a.words[i]), right = __builtin_bit_cast(Two, b.words[i]);
    if constexpr (kSide == 32)
      sums = __builtin_amdgcn_mfma_f32_32x32x4bf16(left, right, sums, 0, 0, 0);
    else
      sums = __builtin_amdgcn_mfma_f32_16x16x8bf16(left, right, sums, 0, 0, 0);
  }
  return sums;
}
#else
template <int kSide>
__device__ __forceinline__ MatrixSums<kSide> multiply_words(MatrixOperand a, MatrixOperand b, MatrixSums<kSide> sums,
                                                            Bf16) {
  using Four = short __attribute__((ext_vector_type(4)));
  const Four left = __builtin_bit_cast(Four, a), right = __builtin_bit_cast(Four, b);
  if constexpr (kSide == 32)
    return __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(left, right, sums, 0, 0, 0);
  else
    return __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(left, right, sums, 0, 0, 0);
}
#endif
#endif

// sums += a * b, of values of type T: Half or Bf16. All lanes of the wave must take part.
template <int kSide, typename T>
__device__ __forceinline__ void multiply_matrices(MatrixOperand a, MatrixOperand b, MatrixSums<kSide>& sums) {
#if DCULAB_GPU_HOST
  constexpr auto kValues = std::is_same_v<T, Half> ? host::MatrixValues::f16 : host::MatrixValues::bf16;
  host::multiply_add({.side = kSide, .depth = kMatrixDepth<kSide>, .values = kValues}, std::bit_cast<std::uint64_t>(a),
                     std::bit_cast<std::uint64_t>(b), sums.values);
#elif DCULAB_GPU_MFMA
  sums = multiply_words<kSide>(a, b, sums, T{});
#else
  (void)a, (void)b, (void)sums;  // never called
#endif
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
