// Which sizes the decode attention kernels that people run allow: this project's, vLLM's and FlashAttention's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/model_shape.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::study {

struct KernelLimits {
  std::string name;
  std::vector<int> block_sizes;       // usual one first
  std::vector<int> partition_tokens;  // usual one first; 0 = never split, or as the kernel decides itself
  std::vector<Dtype> kv_dtypes;       // 16 bits first
  int query_heads_per_workgroup = 0;  // KernelTiling's
  std::string why_not;                // empty: runs this model on this machine
  std::string source;
};

// This project's kernels first.
[[nodiscard]] std::vector<KernelLimits> kernel_limits(const ModelShape& model, const sim::Machine& machine);

// "8, 16, 32"
[[nodiscard]] std::string sizes_text(std::vector<int> sizes);

}  // namespace dculab::study
