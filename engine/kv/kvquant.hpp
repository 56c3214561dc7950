// A kvquant4, kvquant3 or kvquant2 cache: attention is told how to rotate the keys that it reads.
#pragma once

#include "engine/kv/cpu_kv_slice.hpp"

namespace dculab::engine {

class KvQuantSlice final : public CpuKvSlice {
 public:
  void begin(const StepPlan& /*plan*/, int /*block_size*/) override {}
  void bind(kernels::PagedAttentionArgs& args, Phase phase, const KeyRotation& rotation) const override;
};

}  // namespace dculab::engine
