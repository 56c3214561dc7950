// Which sizes and formats a stack's kernels allow for a model on a machine.
#pragma once

#include <algorithm>
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
  std::vector<int> partition_tokens;  // usual one first; 0 = never split; empty: the stack decides
  std::vector<Dtype> kv_dtypes;       // 16 bits first
  std::string why_not;                // empty: runs this model on this machine
};

// The stack that the machine runs first, then all shipped ones for it; with the options' block size and KV format left
// to choose.
[[nodiscard]] std::vector<StackLimits> stack_limits(const ModelShape& model, const EngineOptions& options,
                                                    const sim::Machine& machine);

// Of kv_dtypes those that are known to run: whether the kernels of another program take a format that the machine has
// no rate for is not known.
[[nodiscard]] std::vector<Dtype> known_kv_dtypes(const StackLimits& limits, const sim::Machine& machine);

// The partition_tokens that fill a device: 0 when a workgroup per sequence and `heads_per_workgroup` query heads does,
// else what cuts the longest context into enough partitions. vLLM asks for 512 tokens whenever sequences x heads <=
// 512; here the device says how many workgroups it holds: four per compute unit, so that two are resident while two
// wait, and no partition is shorter than 256 tokens, whose loads outweigh the merging.
[[nodiscard]] constexpr int partition_that_fills(int num_seqs, int num_heads, int heads_per_workgroup,
                                                 int max_context_len, int compute_units) {
  constexpr int kWorkgroupsPerComputeUnit = 4, kShortest = 256;
  const int workgroups = std::max(1, num_seqs * (num_heads / std::max(1, heads_per_workgroup)));
  const int partitions = (kWorkgroupsPerComputeUnit * compute_units + workgroups - 1) / workgroups;
  if (partitions <= 1 || max_context_len <= kShortest) return 0;
  const int tokens = (max_context_len + partitions - 1) / partitions;
  const int rounded = (tokens + kShortest - 1) / kShortest * kShortest;
  return rounded >= max_context_len ? 0 : rounded;
}

// "8, 16, 32"
[[nodiscard]] std::string sizes_text(std::vector<int> sizes);

}  // namespace dculab::study
