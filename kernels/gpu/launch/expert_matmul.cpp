#include "kernels/gpu/experts/expert_matmul.hip.hpp"

#include "kernels/gpu/launch/dispatch.hpp"
#include "kernels/gpu/launch/start.hpp"
#include "kernels/gpu/launch/supported.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {
namespace {

void require_supported(const ExpertMatmul& args) {
  require_activation("the input of expert_matmul", args.x.dtype);
  require_matrix("the weights of expert_matmul", args.w.dtype, args.scales);
  require_activation("the result of expert_matmul", args.y.dtype);
  require_aligned("the input of expert_matmul", args.x.data);
  require_aligned("the weights of expert_matmul", args.w.data);
  require_multiple("expert_matmul", "in-features", args.k, 8);
  // Within a tile of w, and within x, bytes are counted in 32 bits.
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 32;
  const std::int64_t rows = std::max<std::int64_t>(args.x_rows, kGemmColumns);
  if (rows * args.k * std::int64_t{sizeof(float)} > kMostBytes)
    throw InputError("expert_matmul of " + std::to_string(args.x_rows) + " rows of " + std::to_string(args.k) +
                     " in-features has no GPU kernel; there is one for 2^30 values of x at most");
}

template <int kRows>
void start_gemv(Stream& stream, const ExpertMatmul& args) {
  with_wave_size(stream, [&]<int kWave>() {
    const int columns = ceiling_quotient(args.n, kGemvThreads / kWave * kGemvColumns);
    with_formats(args.x.dtype, args.w.dtype, [&]<typename X, typename W>() {
      launch(stream, {.x = args.rows.tiles.count, .y = columns, .threads = kGemvThreads},
             expert_gemv_kernel<kWave, kRows, X, W>, args);
    });
  });
}

template <int kRows>
void start_gemm(Stream& stream, const ExpertMatmul& args) {
  const LaunchShape shape{args.rows.tiles.count, ceiling_quotient(args.n, kGemmColumns), 1, kGemmThreads};
  with_formats(args.x.dtype, args.w.dtype,
               [&]<typename X, typename W>() { launch(stream, shape, expert_gemm_kernel<kRows, X, W>, args); });
}

}  // namespace

void start(Stream& stream, const ExpertMatmul& args) {
  require_supported(args);
  if (args.rows.tiles.count == 0) return;
  with_count<1, 2, 4, 8, kGemmSmallRows, kGemmMediumRows, kGemmLargeRows>(args.rows.tiles.rows, [&]<int kRows>() {
    if constexpr (kRows <= kGemvMaxRows)
      start_gemv<kRows>(stream, args);
    else
      start_gemm<kRows>(stream, args);
  });
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
