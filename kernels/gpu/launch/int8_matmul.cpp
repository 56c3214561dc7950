#include "kernels/gpu/matmul/int8_matmul.hip.hpp"

#include "kernels/gpu/launch/dispatch.hpp"
#include "kernels/gpu/launch/start.hpp"
#include "kernels/gpu/launch/supported.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {
namespace {

constexpr int kLongestSum = 1 << 17;  // int32 holds it: 2^17 * 127 * 128 < 2^31, and x is never -128

void require_supported(const Int8Matmul& args) {
  require_activation("the result of int8_matmul", args.y.dtype);
  require_aligned("the input of int8_matmul", args.x);
  require_aligned("the weight of int8_matmul", args.w);
  require_multiple("int8_matmul", "in-features", args.k, 16);
  require_fitting_rows("int8_matmul", args.n, args.y_stride);
  if (args.k > kLongestSum)
    throw InputError("int8_matmul of " + std::to_string(args.k) + " in-features has no GPU kernel; there is one for " +
                     std::to_string(kLongestSum) + " at most, whose sums int32 holds");
}

void start_gemv(Stream& stream, const Int8Matmul& args, int rows) {
  with_wave_size(stream, [&]<int kWave>() {
    const int workgroups = ceiling_quotient(args.n, kGemvThreads / kWave * kGemvColumns);
    with_count<1, 2, 4, 8>(rows, [&]<int kRows>() {
      launch(stream, {.x = workgroups, .threads = kGemvThreads}, int8_gemv_kernel<kWave, kRows>, args);
    });
  });
}

}  // namespace

void start(Stream& stream, const Int8Matmul& args) {
  require_supported(args);
  if (args.m == 0 || args.n == 0) return;
  const MatmulPlan plan = plan_matmul(args.m, args.n, args.k);
  if (plan.kernel == MatmulKernel::gemv) return start_gemv(stream, args, plan.rows);
  with_count<kGemmSmallRows, kGemmMediumRows, kGemmLargeRows>(plan.rows, [&]<int kRows>() {
    launch(stream, {plan.row_tiles, plan.column_tiles, 1, kGemmThreads}, int8_gemm_kernel<kRows>, args);
  });
}

void start(Stream& stream, const QuantizeRows& args) {
  require_activation("the input of quantize_rows", args.x.dtype);
  with_wave_size(stream, [&]<int kWave>() {
    launch(stream, {.x = args.m, .threads = kQuantizeThreads}, quantize_rows_kernel<kWave>, args);
  });
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
