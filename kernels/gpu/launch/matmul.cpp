#include "kernels/gpu/matmul/matmul.hip.hpp"

#include "kernels/gpu/launch/dispatch.hpp"
#include "kernels/gpu/launch/start.hpp"
#include "kernels/gpu/launch/supported.hpp"
#include "kernels/gpu/runtime_blas.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {
namespace {

// Within a tile of kGemmLargeRows rows, bytes are counted in 32 bits: of w, and of x, whose rows may be longer.
constexpr int kMostInFeatures = 1 << 22;

void require_supported(const Matmul& args) {
  require_activation("the input of matmul", args.x.dtype);
  require_matrix("the weights of matmul", args.w.dtype, args.scales);
  require_activation("the result of matmul", args.y.dtype);
  require_aligned("the input of matmul", args.x.data);
  require_aligned("the weight of matmul", args.w.data);
  require_multiple("matmul", "in-features", args.k, 8);
  require_multiple("matmul", "values between the rows of its input", args.x_stride, 8);
  require_fitting_rows("matmul", args.n, args.y_stride);
  if (args.k > kMostInFeatures)
    throw InputError("matmul of " + std::to_string(args.k) + " in-features has no GPU kernel; there is one for " +
                     std::to_string(kMostInFeatures) + " at most");
  if (args.x_stride < args.k || args.x_stride > kMostInFeatures)
    throw InputError("matmul of " + std::to_string(args.k) + " in-features has no GPU kernel for input rows of " +
                     std::to_string(args.x_stride) +
                     " values; there is one for rows of its in-features at least, and of " +
                     std::to_string(kMostInFeatures) + " values at most");
}

void start_gemv(Stream& stream, const Matmul& args, int rows) {
  with_wave_size(stream, [&]<int kWave>() {
    const int workgroups = ceiling_quotient(args.n, kGemvThreads / kWave * kGemvColumns);
    with_formats(args.x.dtype, args.w.dtype, [&]<typename X, typename W>() {
      with_count<1, 2, 4, 8>(rows, [&]<int kRows>() {
        launch(stream, {.x = workgroups, .threads = kGemvThreads}, gemv_kernel<kWave, kRows, X, W>, args);
      });
    });
  });
}

void start_gemm(Stream& stream, const Matmul& args, const MatmulPlan& plan) {
  const LaunchShape shape{plan.row_tiles, plan.column_tiles, plan.split.parts, kGemmThreads};
  with_formats(args.x.dtype, args.w.dtype, [&]<typename X, typename W>() {
    with_count<kGemmSmallRows, kGemmMediumRows, kGemmLargeRows>(
        plan.rows, [&]<int kRows>() { launch(stream, shape, gemm_kernel<kRows, X, W>, args, plan.split.k_per_part); });
  });
}

}  // namespace

void start(Stream& stream, const Matmul& given) {
  Matmul args = given;
  if (args.x_stride == 0) args.x_stride = args.k;
  require_supported(args);
  if (args.m == 0 || args.n == 0) return;
  MatmulPlan plan = plan_matmul(args.m, args.n, args.k);
  if (plan.kernel == MatmulKernel::gemv) return start_gemv(stream, args, plan.rows);
  if (args.bias == nullptr && multiply_with_blas(stream, args)) return;
  if (args.workspace == nullptr) plan.split = {1, args.k};
  if (plan.split.parts == 1) return start_gemm(stream, args, plan);
  Matmul partial = args;
  partial.y = {args.workspace, Dtype::f32};
  partial.y_stride = args.n;
  partial.bias = nullptr;
  start_gemm(stream, partial, plan);
  start(stream, SplitKSum{args.workspace, args.y, plan.split.parts, args.m, args.n, args.y_stride, args.bias});
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
