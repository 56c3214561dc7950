// Which sizes and formats a stack's kernels allow for a model on a machine.
#pragma once

#include <string>
#include <vector>

#include "core/engine_options.hpp"
#include "model/model_shape.hpp"
#include "sim/hardware/machine.hpp"
#include "sim/hardware/stack.hpp"

namespace dculab::study {

struct StackLimits {
  sim::Stack stack;
  std::vector<int> block_sizes;       // the program's own first
  std::vector<int> partition_tokens;  // usual one first; 0 = never split; empty where it is nobody's choice
  std::vector<Dtype> kv_dtypes;       // 16 bits first
  std::string why_not;                // empty: runs this model on this machine
};

// The stack that the machine runs first, then all shipped ones for it; with the options' block size and KV format left
// to choose.
[[nodiscard]] std::vector<StackLimits> stack_limits(const ModelShape& model, const EngineOptions& options,
                                                    const sim::Machine& machine);

// "8, 16, 32"
[[nodiscard]] std::string sizes_text(std::vector<int> sizes);

}  // namespace dculab::study
