// A kivi4 or kivi2 cache (kivi.hpp) on a device: groups of tokens are quantized into the blocks once they are complete,
// the newest tokens of each sequence lie beside them in F16.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "engine/kv/gpu_kv_slice.hpp"
#include "engine/kv/residual_rows.hpp"
#include "engine/memory/device_memory.hpp"
#include "kernels/gpu/kv/kivi.hpp"

namespace dculab::engine {

class GpuKivi final : public GpuKvSlice {
 public:
  GpuKivi(std::shared_ptr<kernels::gpu::Device> device, const KvCacheOptions& kv_cache);

  // Throws InputError for a sequence that goes on from tokens of others, or has lost some.
  void begin(const StepPlan& plan, int block_size) override;

  // Quantizes the groups that the new tokens complete.
  [[nodiscard]] bool write_cache(const GpuKvLayer& layer) override;

  // K and V of the new tokens lie behind Q.
  void bind(GpuAttention& attention, Phase phase) const override;
  void narrow(kernels::gpu::PagedAttention& args, int first) const override;

  // Puts the new tokens into the residuals.
  void after_attention(const GpuAttention& attention, Phase phase) override;

  void make_up_unseen() override { rows_.allow_any_start(); }

 private:
  // Of the sequences of a phase, the most that one has.
  struct Most {
    int groups = 0;  // that it completes
    int kept = 0;    // new tokens that its residual takes
  };
  [[nodiscard]] static kernels::gpu::KiviTokens tokens_of(const GpuAttention& attention, int most);

  std::shared_ptr<kernels::gpu::Device> device_;
  int residual_tokens_;
  ResidualRows rows_;
  DeviceMemory device_rows_;                  // [max_num_seqs], in the order of the batch: prefills, then decodes
  std::array<const std::int32_t*, 2> first_;  // of these, by phase
  std::array<Most, 2> most_;                  // likewise
};

}  // namespace dculab::engine
