#include "kernels/gpu/matmul/split_k.hip.hpp"

#include "kernels/gpu/launch/start.hpp"
#include "kernels/gpu/launch/supported.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

void start(Stream& stream, const SplitKSum& args) {
  require_aligned("the workspace of a matmul", args.partials);
  const int columns = (args.n + kSplitKColumns - 1) / kSplitKColumns;
  with_wave_size(stream, [&]<int kWave>() {
    launch(stream, {.x = columns, .y = args.m, .threads = kSplitKThreads}, split_k_sum_kernel<kWave>, args);
  });
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
