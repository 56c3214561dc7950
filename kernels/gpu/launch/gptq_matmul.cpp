#include <bit>

#include "core/error.hpp"
#include "kernels/gpu/launch/start.hpp"
#include "kernels/gpu/launch/supported.hpp"
#include "kernels/gpu/matmul/gptq_matmul.hip.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {
namespace {

void require_supported(const GptqMatmul& args) {
  require_activation("the input of a GPTQ matmul", args.x.dtype);
  require_activation("the result of a GPTQ matmul", args.y.dtype);
  require_aligned("the input of a GPTQ matmul", args.x.data);
  require_aligned("the qweight of a GPTQ matmul", args.weight.qweight);
  require_aligned("the scales of a GPTQ matmul", args.weight.scales);
  require_aligned("the x_perm of a GPTQ matmul", args.x_perm);
  const int k = args.weight.in_features, n = args.weight.out_features, group = args.weight.group_size;
  if (k <= 0 || n <= 0 || k % kGptqChunk != 0 || n % 8 != 0)
    throw InputError("a GPTQ matrix of " + std::to_string(k) + " in-features and " + std::to_string(n) +
                     " out-features has no GPU kernel; they must be multiples of 32 and of 8");
  const bool known = group == k || ((group == 32 || group == 64 || group == 128) && k % group == 0);
  if (!known)
    throw InputError("a GPTQ matrix of " + std::to_string(k) + " in-features in groups of " + std::to_string(group) +
                     " has no GPU kernel; groups must be of 32, 64 or 128 that divide the in-features, or of all");
}

GptqDivision division_of(const GptqMatmul& args, const GptqPlan& plan) {
  const auto group = static_cast<unsigned>(args.weight.group_size);
  const bool one_group = args.weight.group_size == args.weight.in_features;
  return {plan.split.k_per_part, one_group ? 31 : std::countr_zero(group)};
}

template <int kRows, typename T>
void start_kernel(Stream& stream, const GptqMatmul& args, const GptqPlan& plan) {
  with_wave_size(stream, [&]<int kWave>() {
    if constexpr (kRows <= kGptqGemvMaxRows)
      launch(stream, {.x = plan.column_tiles, .y = plan.split.parts, .threads = kGptqThreads},
             gptq_gemv_kernel<kWave, kRows, T>, args, division_of(args, plan));
    else
      launch(stream, {.x = plan.column_tiles, .y = plan.row_tiles, .z = plan.split.parts, .threads = kGptqThreads},
             gptq_gemm_kernel<kWave, kRows, T>, args, division_of(args, plan));
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
  require_supported(given);
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
