// A kivi4 or kivi2 cache: groups of tokens are quantized into the blocks once they are complete, the newest tokens of
// each sequence lie beside them in F16.
#pragma once

#include <cstdint>
#include <span>

#include "engine/kv/cpu_kv_slice.hpp"
#include "engine/kv/residual_rows.hpp"
#include "kernels/kv/kivi.hpp"

namespace dculab::engine {

class KiviSlice final : public CpuKvSlice {
 public:
  KiviSlice(const ModelShape& shape, const KvCacheOptions& options)
      : query_width_(shape.heads().query_width()), kv_width_(shape.heads().kv_width()), rows_(options.max_num_seqs) {}

  void begin(const StepPlan& plan, int block_size) override;
  void after_cache(const CpuKvLayer& layer) override;
  void bind(kernels::PagedAttentionArgs& args, Phase phase, const KeyRotation& rotation) const override;
  void after_attention(const CpuKvLayer& layer, Phase phase) override;
  void make_up_unseen() override { rows_.allow_any_start(); }

 private:
  [[nodiscard]] kernels::KiviArgs args_of(const kernels::PagedAttentionArgs& attention) const;

  int query_width_, kv_width_;
  ResidualRows rows_;
  std::span<const std::int32_t> step_rows_;  // in the order of the batch: prefills, then decodes
  int num_prefills_ = 0;
};

}  // namespace dculab::engine
