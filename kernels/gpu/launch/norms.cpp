#include "kernels/gpu/layers/norms.hip.hpp"

#include "kernels/gpu/launch/start.hpp"
#include "kernels/gpu/launch/supported.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

void start(Stream& stream, const RmsNorm& args) {
  require_activation("the input of rms_norm", args.x.dtype);
  require_weight("the weight of rms_norm", args.weight.dtype);
  require_activation("the result of rms_norm", args.out.dtype);
  with_wave_size(stream, [&]<int kWave>() {
    launch(stream, {.x = args.num_tokens, .threads = kNormThreads}, rms_norm_kernel<kWave>, args);
  });
}

void start(Stream& stream, const HeadNorm& args) {
  require_activation("what head_norm norms", args.x.dtype);
  require_weight("the weight of head_norm", args.weight.dtype);
  with_wave_size(stream, [&]<int kWave>() {
    constexpr int kWaves = kNormThreads / kWave;
    launch(stream, {.x = args.num_tokens, .y = (args.num_heads + kWaves - 1) / kWaves, .threads = kNormThreads},
           head_norm_kernel<kWave>, args);
  });
}

void start(Stream& stream, const LayerNorm& args) {
  require_activation("the input of layer_norm", args.x.dtype);
  for (const Input& added : args.added) require_activation("what layer_norm adds to the residual", added.dtype);
  require_weight("the weight of layer_norm", args.weight.dtype);
  require_weight("the bias of layer_norm", args.bias.dtype);
  require_activation("the result of layer_norm", args.out.dtype);
  with_wave_size(stream, [&]<int kWave>() {
    launch(stream, {.x = args.num_tokens, .threads = kNormThreads}, layer_norm_kernel<kWave>, args);
  });
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
