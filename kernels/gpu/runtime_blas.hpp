// The vendor's library for products of halves: rocBLAS with hipcc, cuBLAS with nvcc, where CMake found it and defined
// DCULAB_GPU_BLAS. Elsewhere, on the host above all, there is none, and our own kernel serves.
#pragma once

#include "kernels/gpu/args.hpp"
#include "kernels/gpu/runtime_api.hpp"

#if DCULAB_GPU_BLAS && DCULAB_GPU_HIP
#include <rocblas/rocblas.h>
#define DCULAB_GPU_ROCBLAS 1
#elif DCULAB_GPU_BLAS && DCULAB_GPU_CUDA
#include <cublas_v2.h>
#define DCULAB_GPU_CUBLAS 1
#endif

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

#if DCULAB_GPU_ROCBLAS || DCULAB_GPU_CUBLAS

#if DCULAB_GPU_ROCBLAS

inline void check(rocblas_status status, const char* what) {
  if (status != rocblas_status_success)
    throw std::runtime_error(std::string("rocBLAS could not ") + what + ": " + rocblas_status_to_string(status));
}

// One per thread, for the device that the thread works on. Without atomics, so that results repeat.
inline rocblas_handle blas_handle() {
  thread_local const rocblas_handle handle = [] {
    rocblas_handle made = nullptr;
    check(rocblas_create_handle(&made), "start");
    check(rocblas_set_atomics_mode(made, rocblas_atomics_not_allowed), "do without atomics");
    return made;
  }();
  return handle;
}

#else

inline void check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw std::runtime_error(std::string("cuBLAS could not ") + what + ": " + cublasGetStatusString(status));
}

inline cublasHandle_t blas_handle() {
  thread_local const cublasHandle_t handle = [] {
    cublasHandle_t made = nullptr;
    check(cublasCreate(&made), "start");
    check(cublasSetAtomicsMode(made, CUBLAS_ATOMICS_NOT_ALLOWED), "do without atomics");
    return made;
  }();
  return handle;
}

#endif

// Returns whether the library has a product of these formats; if so, it is on its way.
// BLAS counts columns first: y^T [n, m] = (w^T)^T [n, k] * x^T [k, m]. Products and sums in f32.
[[nodiscard]] inline bool multiply_with_blas(Stream& stream, const Matmul& args) {
  if (args.x.dtype != Dtype::f16 || args.w.dtype != Dtype::f16) return false;
  const float one = 1, zero = 0;
#if DCULAB_GPU_ROCBLAS
  const auto y_type = args.y.dtype == Dtype::f32 ? rocblas_datatype_f32_r : rocblas_datatype_f16_r;
  check(rocblas_set_stream(blas_handle(), stream.handle), "use the stream");
  check(rocblas_gemm_ex(blas_handle(), rocblas_operation_transpose, rocblas_operation_none, args.n, args.m, args.k,
                        &one, args.w.data, rocblas_datatype_f16_r, args.k, args.x.data, rocblas_datatype_f16_r,
                        args.x_stride, &zero, args.y.data, y_type, args.y_stride, args.y.data, y_type, args.y_stride,
                        rocblas_datatype_f32_r, rocblas_gemm_algo_standard, 0, 0),
        "multiply");
#else
  const auto y_type = args.y.dtype == Dtype::f32 ? CUDA_R_32F : CUDA_R_16F;
  check(cublasSetStream(blas_handle(), stream.handle), "use the stream");
  check(cublasGemmEx(blas_handle(), CUBLAS_OP_T, CUBLAS_OP_N, args.n, args.m, args.k, &one, args.w.data, CUDA_R_16F,
                     args.k, args.x.data, CUDA_R_16F, args.x_stride, &zero, args.y.data, y_type, args.y_stride,
                     CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
        "multiply");
#endif
  return true;
}

#else

[[nodiscard]] inline bool multiply_with_blas(Stream&, const Matmul&) { return false; }

#endif

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
