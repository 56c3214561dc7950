// Options of `vllm serve` for a layout with its sizes, and what of them other programs have too. Names of options:
// vllm/engine/arg_utils.py.
#pragma once

#include <string>

#include "config/benchmarks/vllm_writer.hpp"
#include "core/engine_options.hpp"
#include "model/model_shape.hpp"
#include "sim/hardware/deployment.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::present {

// "auto", "fp8_e4m3"; empty where the programs have no such format.
[[nodiscard]] std::string program_kv_format(Dtype dtype);

// Unless it is 1.
void add_size(const char* option, int size, config::ProgramOptions& options);

// Of `replicas` of a layout in one command.
[[nodiscard]] config::ProgramOptions vllm_layout(const sim::ReplicaDevices& devices, int replicas);

struct VllmSizes {
  int block_size = 16;
  Dtype kv_cache_dtype = Dtype::f16;
  int max_num_seqs = 1;  // of each scheduler of ours; those of all stages are one in vLLM
  int max_num_batched_tokens = 1;
};
void add_vllm_sizes(const VllmSizes& sizes, const sim::ReplicaDevices& devices, config::ProgramOptions& options);

// "--block-size 16 --enforce-eager"
[[nodiscard]] std::string line_of(const config::ProgramOptions& options);

// The longest context that fits in the KV cache of a device with `part` of the model, in whole 256 tokens from 256 on;
// 0 where `longest` tokens do.
[[nodiscard]] int longest_context(const sim::Machine& machine, const ModelShape& part, const EngineOptions& options,
                                  const sim::ReplicaDevices& devices, int longest);

// Weights that the program makes of the checkpoint when it starts.
[[nodiscard]] bool quantizes_itself(const ModelShape& model, const WeightFormat& weights);

// "Use a checkpoint with gptq-int4 weights instead of Qwen/Qwen3-32B. "; empty where `checkpoint`, the model's own,
// does.
[[nodiscard]] std::string checkpoint_note(const ModelShape& model, const WeightFormat& weights,
                                          const std::string& checkpoint);

}  // namespace dculab::present
