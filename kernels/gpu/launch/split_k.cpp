#include "kernels/gpu/matmul/split_k.hip.hpp"

#include "kernels/gpu/launch/start.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

void start(Stream& stream, const SplitKSum& args) {
  const int columns = (args.n + kSplitKColumns - 1) / kSplitKColumns;
  with_wave_size(stream, [&]<int kWave>() {
    launch(stream, {.x = columns, .y = args.m, .threads = kSplitKThreads}, split_k_sum_kernel<kWave>, args);
  });
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
