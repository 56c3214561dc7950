// What a policy of the KV cache does around the ops of a GPU executor's layers: CpuKvSlice for a device. One file for
// each that does more than the kernels are told anyhow; gpu_kv_slices.cpp lists them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "core/engine_options.hpp"
#include "core/step_plan.hpp"
#include "engine/kv/kv_layouts.hpp"
#include "engine/step/gpu_attention.hpp"
#include "kernels/gpu/device.hpp"
#include "model/model_shape.hpp"

namespace dculab::engine {

// K and V of the new tokens of a layer, not rotated yet.
struct GpuNewKv {
  kernels::gpu::Input kv{};  // [tokens, stride], the first 2 * kv_width used: K, then V
  std::int64_t stride = 0;   // values between tokens
};

// A layer of a step, as its attention runs: what both phases are told, in the order of Phase. num_seqs 0: there is
// none.
struct GpuKvLayer {
  int layer = 0;
  const float* cos_sin = nullptr;  // null with ALiBi
  std::array<GpuAttention, 2> attention;
  std::byte* beside_blocks = nullptr;  // what the policy keeps of each block; null where it keeps nothing

  [[nodiscard]] const GpuAttention& of(Phase phase) const { return attention[static_cast<std::size_t>(phase)]; }
};

class GpuKvSlice {
 public:
  virtual ~GpuKvSlice() = default;

  // Of a new step, whose batch outlives it. Throws std::invalid_argument, or InputError, when a sequence goes on from
  // tokens that have not been computed here.
  virtual void begin(const StepPlan& plan, int block_size) = 0;

  // Before K and V of a layer's new tokens are rotated. Once per layer and step.
  virtual void before_rotation(const GpuNewKv& /*kv*/, int /*layer*/) {}

  // Before they are written: completes what the kernel is told.
  virtual void before_cache(kernels::gpu::ReshapeAndCache& /*args*/, int /*layer*/) {}

  // Writes the new tokens of a layer once they are rotated. False: the kernel of all others does.
  [[nodiscard]] virtual bool write_cache(const GpuKvLayer& /*layer*/) { return false; }

  // Completes what attention of a phase is told.
  virtual void bind(GpuAttention& /*attention*/, Phase /*phase*/) const {}

  // Right before attention of decodes from the `first` on: leaves out of what is cached what it does not load.
  virtual void narrow(kernels::gpu::PagedAttention& /*args*/, int /*first*/) const {}

  virtual void after_attention(const GpuAttention& /*attention*/, Phase /*phase*/) {}

  // Runs an op that is the slice's own.
  virtual void execute(const Op& op, const GpuKvLayer& layer);

  virtual void forget(SequenceId /*id*/) {}

  // From now on what was never computed here is made up: for measuring steps without a prefill.
  virtual void make_up_unseen() {}
};

// Null where the kernels need no help.
[[nodiscard]] std::unique_ptr<GpuKvSlice> make_gpu_kv_slice(const std::shared_ptr<kernels::gpu::Device>& device,
                                                            const ModelShape& shape, const GpuStepLimits& limits,
                                                            const KvCacheOptions& kv_cache, int max_blocks_per_seq,
                                                            RetentionPolicy policy);

}  // namespace dculab::engine
