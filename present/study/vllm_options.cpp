#include "present/study/vllm_options.hpp"

#include "config/weight_format_text.hpp"
#include "sim/memory/capacity.hpp"

namespace dculab::present {

using config::ProgramOptions;

std::string program_kv_format(Dtype dtype) {
  if (dtype == Dtype::f16 || dtype == Dtype::bf16) return "auto";
  return dtype == Dtype::fp8_e4m3 || dtype == Dtype::fp8_e5m2 ? std::string(name(dtype)) : std::string();
}

void add_size(const char* option, int size, ProgramOptions& options) {
  if (size > 1) options.emplace_back(option, std::to_string(size));
}

ProgramOptions vllm_layout(const sim::ReplicaDevices& devices, int replicas) {
  ProgramOptions options;
  add_size("tensor-parallel-size", devices.tensor_parallel_size, options);
  add_size("pipeline-parallel-size", devices.pipeline_parallel_size, options);
  add_size("data-parallel-size", replicas * devices.ranks(), options);
  if (devices.shares_experts()) options.emplace_back("enable-expert-parallel", "");
  return options;
}

void add_vllm_sizes(const VllmSizes& sizes, const sim::ReplicaDevices& devices, ProgramOptions& options) {
  options.emplace_back("block-size", std::to_string(sizes.block_size));
  options.emplace_back("kv-cache-dtype", program_kv_format(sizes.kv_cache_dtype));
  options.emplace_back("max-num-seqs", std::to_string(sizes.max_num_seqs * devices.pipeline_parallel_size));
  options.emplace_back("max-num-batched-tokens", std::to_string(sizes.max_num_batched_tokens));
}

std::string line_of(const ProgramOptions& options) {
  std::string line;
  for (const auto& [option, value] : options)
    line += (line.empty() ? "--" : " --") + option + (value.empty() ? "" : " " + value);
  return line;
}

int longest_context(const sim::Machine& machine, const ModelShape& part, const EngineOptions& options,
                    const sim::ReplicaDevices& devices, int longest) {
  const auto fits = [&](int tokens) {
    return sim::capacity(machine, part, options, tokens).max_sequences >= devices.pipeline_parallel_size;
  };
  if (fits(longest)) return 0;
  int good = 1, bad = longest;
  while (bad - good > 1) (fits(good + (bad - good) / 2) ? good : bad) = good + (bad - good) / 2;
  constexpr int kStep = 256;
  return good < kStep ? good : good / kStep * kStep;
}

bool quantizes_itself(const ModelShape& model, const WeightFormat& weights) {
  return weights.dtype == Dtype::fp8_e4m3 && !(weights == model.layer_format());
}

std::string checkpoint_note(const ModelShape& model, const WeightFormat& weights, const std::string& checkpoint) {
  if (weights == model.layer_format() || quantizes_itself(model, weights)) return "";
  return "Use a checkpoint with " + config::weight_format_text(weights) + " weights instead of " + checkpoint + ". ";
}

}  // namespace dculab::present
