#include "kernels/gpu/layers/sampling.hip.hpp"

#include "kernels/gpu/launch/start.hpp"
#include "kernels/gpu/launch/supported.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

void start(Stream& stream, const TopK& args) {
  require_activation("the input of top_k", args.x.dtype);
  if (args.k < 1 || args.k > std::min(kMaxTopK, args.width))
    throw InputError("top_k of " + std::to_string(args.k) + " out of " + std::to_string(args.width) +
                     " has no GPU kernel; k is 1 to " + std::to_string(kMaxTopK) + ", and not more than there are");
  with_wave_size(stream, [&]<int kWave>() {
    launch(stream, {.x = args.rows, .threads = kSamplingThreads}, top_k_kernel<kWave>, args);
  });
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
