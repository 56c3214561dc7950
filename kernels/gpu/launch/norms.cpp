#include "kernels/gpu/launch/start.hpp"
#include "kernels/gpu/norms.hip.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

void start(Stream& stream, const RmsNorm& args) {
  with_wave_size(stream, [&]<int kWave>() {
    launch(stream, {.x = args.num_tokens, .threads = kNormThreads}, rms_norm_kernel<kWave>, args);
  });
}

void start(Stream& stream, const LayerNorm& args) {
  with_wave_size(stream, [&]<int kWave>() {
    launch(stream, {.x = args.num_tokens, .threads = kNormThreads}, layer_norm_kernel<kWave>, args);
  });
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
