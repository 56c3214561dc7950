// What a format or a policy of the KV cache does around the ops of a CPU executor's layers. One file for each that does
// more than the kernels are told anyhow; cpu_kv_slices.cpp lists them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "core/step_plan.hpp"
#include "engine/kv/kv_storage.hpp"
#include "kernels/cpu/cpu_kernels.hpp"
#include "kernels/ops.hpp"
#include "model/model_shape.hpp"

namespace dculab::engine {

// A layer of a step, as its attention runs: what both phases are told, in the order of Phase. num_seqs 0: there is
// none.
struct CpuKvLayer {
  int layer = 0;
  const float* cos_sin = nullptr;  // null with ALiBi
  std::array<kernels::PagedAttentionArgs, 2> attention;
  std::byte* beside_blocks = nullptr;  // what the policy keeps of each block; null where it keeps nothing
  kernels::cpu::ThreadPool& threads;
  kernels::cpu::Workspace& workspace;

  [[nodiscard]] kernels::PagedAttentionArgs of(Phase phase) const { return attention[static_cast<std::size_t>(phase)]; }
};

// How rope_and_cache rotates the layer's keys: see RopeAndCacheArgs.
struct KeyRotation {
  const float* cos_sin = nullptr;
  int rotary_dim = 0;
  bool neighbours = false;
};

class CpuKvSlice {
 public:
  virtual ~CpuKvSlice() = default;

  // Of a new step, whose batch outlives it. Throws std::invalid_argument, or InputError, when a sequence goes on from
  // tokens that have not been computed here.
  virtual void begin(const StepPlan& plan, int block_size) = 0;

  // Before K and V of a layer's new tokens, not rotated yet, are rotated and written. Once per layer and step.
  virtual void before_cache(kernels::RopeAndCacheArgs& /*args*/, int /*layer*/) {}
  virtual void after_cache(const CpuKvLayer& /*layer*/) {}

  // Completes what attention is told.
  virtual void bind(kernels::PagedAttentionArgs& /*args*/, Phase /*phase*/, const KeyRotation& /*rotation*/) const {}
  // Right before attention: leaves out of what is cached what it does not load.
  virtual void narrow(kernels::PagedAttentionArgs& /*args*/, Phase /*phase*/) const {}
  virtual void after_attention(const CpuKvLayer& /*layer*/, Phase /*phase*/) {}

  // Runs an op that is the slice's own.
  virtual void execute(const Op& op, const CpuKvLayer& layer);

  virtual void forget(SequenceId /*id*/) {}

  // From now on what was never computed here is made up: for measuring steps without a prefill.
  virtual void make_up_unseen() {}
};

// Null where the kernels need no help.
[[nodiscard]] std::unique_ptr<CpuKvSlice> make_cpu_kv_slice(const ModelShape& shape, const KvCacheOptions& options);
[[nodiscard]] std::unique_ptr<CpuKvSlice> make_cpu_kv_slice(const ModelShape& shape, RetentionPolicy policy);

[[nodiscard]] std::unique_ptr<CpuKvSlice> make_kvquant_slice();

}  // namespace dculab::engine
