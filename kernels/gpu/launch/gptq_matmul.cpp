#include "kernels/gpu/launch/gptq.hpp"
#include "kernels/gpu/launch/start.hpp"
#include "kernels/gpu/matmul/gptq_gemm.hip.hpp"
#include "kernels/gpu/matmul/gptq_gemv.hip.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {
namespace {

template <int kRows, typename T>
void start_kernel(Stream& stream, const GptqMatmul& args, const GptqPlan& plan) {
  with_wave_size(stream, [&]<int kWave>() {
    if constexpr (kRows <= kGptqGemvMaxRows)
      launch(stream, {.x = plan.column_tiles, .y = plan.split.parts, .threads = kGptqThreads},
             gptq_gemv_kernel<kWave, kRows, T>, args, division_of(args.weight, plan.split.k_per_part));
    else
      launch(stream, {.x = plan.column_tiles, .y = plan.row_tiles, .z = plan.split.parts, .threads = kGptqThreads},
             gptq_gemm_kernel<kWave, kRows, T>, args, division_of(args.weight, plan.split.k_per_part));
  });
}

template <typename T>
void start_typed(Stream& stream, const GptqMatmul& args, const GptqPlan& plan) {
  switch (plan.rows) {
    case 1:
      return start_kernel<1, T>(stream, args, plan);
    case 2:
      return start_kernel<2, T>(stream, args, plan);
    case 4:
      return start_kernel<4, T>(stream, args, plan);
    case 8:
      return start_kernel<8, T>(stream, args, plan);
    case 32:
      return start_kernel<32, T>(stream, args, plan);
    default:
      return start_kernel<64, T>(stream, args, plan);
  }
}

}  // namespace

void start(Stream& stream, const GptqMatmul& given) {
  require_gptq(given.x, given.weight, given.x_perm, given.y);
  if (given.m == 0) return;
  GptqMatmul args = given;
  GptqPlan plan = plan_gptq_matmul(args.m, args.weight.out_features, args.weight.in_features);
  if (args.workspace == nullptr) plan.split = {1, args.weight.in_features};
  if (plan.split.parts == 1) args.workspace = nullptr;
  if (args.x.dtype == Dtype::f32)
    start_typed<float>(stream, args, plan);
  else
    start_typed<Half>(stream, args, plan);
  if (args.workspace == nullptr) return;
  start(stream, SplitKSum{.partials = args.workspace,
                          .y = args.y,
                          .parts = plan.split.parts,
                          .m = args.m,
                          .n = args.weight.out_features,
                          .y_stride = args.y_stride,
                          .bias = args.bias});
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
