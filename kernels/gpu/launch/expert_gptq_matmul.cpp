#include "kernels/gpu/experts/expert_gptq_matmul.hip.hpp"

#include "kernels/gpu/launch/dispatch.hpp"
#include "kernels/gpu/launch/gptq.hpp"
#include "kernels/gpu/launch/start.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {
namespace {

template <int kRows, typename T>
void start_kernel(Stream& stream, const ExpertGptqMatmul& args) {
  const GptqDivision division = division_of(args.weight, args.weight.in_features);
  const int tiles = args.rows.tiles.count, n = args.weight.out_features;
  with_wave_size(stream, [&]<int kWave>() {
    if constexpr (kRows <= kGptqGemvMaxRows)
      launch(stream, {.x = ceiling_quotient(n, kGptqGemvColumns), .y = tiles, .threads = kGptqThreads},
             expert_gptq_gemv_kernel<kWave, kRows, T>, args, division);
    else
      launch(stream, {.x = ceiling_quotient(n, kGptqGemmColumns), .y = tiles, .threads = kGptqThreads},
             expert_gptq_gemm_kernel<kWave, kRows, T>, args, division);
  });
}

}  // namespace

void start(Stream& stream, const ExpertGptqMatmul& args) {
  require_gptq(args.x, args.weight, args.x_perm, args.y);
  if (args.rows.tiles.count == 0) return;
  with_count<1, 2, 4, 8, 32, kGptqTileRows>(args.rows.tiles.rows, [&]<int kRows>() {
    if (args.x.dtype == Dtype::f32)
      start_kernel<kRows, float>(stream, args);
    else
      start_kernel<kRows, Half>(stream, args);
  });
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
