#include "present/study/serve_command.hpp"

#include <algorithm>
#include <string_view>

#include "config/number_text.hpp"
#include "core/error.hpp"
#include "present/output/table_text.hpp"
#include "sim/memory/capacity.hpp"

namespace dculab::present {
namespace {

using config::ProgramOptions;

// The first of a program's stacks whose kernels serve the load.
[[nodiscard]] const study::StackChoice* stack_of(const study::Recommendation& result, std::string_view program) {
  for (const study::StackChoice& each : result.stacks)
    if (each.best && each.limits.stack.program == program) return &each;
  return nullptr;
}

[[nodiscard]] bool is_half(Dtype dtype) { return dtype == Dtype::f16 || dtype == Dtype::bf16; }

// Empty where the programs have no such format.
[[nodiscard]] std::string kv_format(Dtype dtype) {
  if (is_half(dtype)) return "auto";
  return dtype == Dtype::fp8_e4m3 || dtype == Dtype::fp8_e5m2 ? std::string(name(dtype)) : std::string();
}

// Sequences of all stages are one scheduler's in these programs.
[[nodiscard]] int most_sequences(const study::Recommendation& result) {
  return result.served.batch * result.serving.devices.pipeline_parallel_size;
}

[[nodiscard]] int replicas_of_server(const study::Recommendation& result) {
  return result.fleet ? std::min(result.replicas, result.fleet->replicas_of_server()) : result.replicas;
}

// 0 where a sequence of the model's longest context fits.
[[nodiscard]] int longest_context(const study::Recommendation& result) {
  const sim::ServingCase& serving = result.serving;
  EngineOptions options = study::options_with(serving, result.setting, result.served.batch);
  options.max_num_batched_tokens = result.tokens().max_num_batched_tokens;
  const ModelShape part = sim::model_of(serving, result.setting);
  const auto fits = [&](int tokens) {
    return sim::capacity(serving.machine, part, options, tokens).max_sequences >=
           serving.devices.pipeline_parallel_size;
  };
  const int longest = serving.model.max_position_embeddings;
  if (fits(longest)) return 0;
  int good = 1, bad = longest;
  while (bad - good > 1) (fits(good + (bad - good) / 2) ? good : bad) = good + (bad - good) / 2;
  constexpr int kStep = 256;
  return good < kStep ? good : good / kStep * kStep;
}

void add_parallelism(const sim::ReplicaDevices& devices, int replicas, ProgramOptions& options) {
  const auto add = [&options](const char* option, int size) {
    if (size > 1) options.emplace_back(option, std::to_string(size));
  };
  add("tensor-parallel-size", devices.tensor_parallel_size);
  add("pipeline-parallel-size", devices.pipeline_parallel_size);
  add("data-parallel-size", replicas * devices.ranks());
  if (devices.shares_experts()) options.emplace_back("enable-expert-parallel", "");
}

void add_sizes(const study::Recommendation& result, int block_size, ProgramOptions& options) {
  options.emplace_back("block-size", std::to_string(block_size));
  options.emplace_back("kv-cache-dtype", kv_format(result.setting.kv_cache_dtype));
  options.emplace_back("max-num-seqs", std::to_string(most_sequences(result)));
  options.emplace_back("max-num-batched-tokens", std::to_string(result.tokens().max_num_batched_tokens));
}

[[nodiscard]] std::string line_of(const ProgramOptions& options) {
  std::string line;
  for (const auto& [option, value] : options)
    line += (line.empty() ? "--" : " --") + option + (value.empty() ? "" : " " + value);
  return line;
}

[[nodiscard]] std::vector<std::string> tied_block_sizes(const study::Recommendation& result) {
  for (const study::Decision& decision : result.decisions) {
    if (decision.key != "kv_cache.block_size") continue;
    std::vector<std::string> tied;
    for (std::size_t index = 0; index < decision.candidates.size(); ++index)
      if (decision.verdict.is_tied(index)) tied.push_back(decision.candidates[index].value);
    return tied;
  }
  return {};
}

// Another layout than the chosen one, with the limits that it has in closed form.
[[nodiscard]] ProgramOptions options_of_layout(const study::Recommendation& result, const study::Layout& layout) {
  ProgramOptions options;
  add_parallelism(layout.devices, std::min(layout.replicas, result.fleet->replicas_of_server(layout)), options);
  options.emplace_back("block-size", std::to_string(layout.setting.block_size));
  options.emplace_back("kv-cache-dtype", kv_format(layout.setting.kv_cache_dtype));
  options.emplace_back("max-num-seqs", std::to_string(layout.served.batch * layout.devices.pipeline_parallel_size));
  options.emplace_back("max-num-batched-tokens", std::to_string(result.tokens().max_num_batched_tokens));
  return options;
}

}  // namespace

config::ProgramOptions vllm_server_options(const study::Recommendation& result) {
  const study::StackChoice* const kernel = stack_of(result, "vLLM");
  if (kernel == nullptr || kv_format(result.setting.kv_cache_dtype).empty()) return {};
  ProgramOptions options;
  add_parallelism(result.serving.devices, replicas_of_server(result), options);
  add_sizes(result, kernel->best->setting.block_size, options);
  options.emplace_back("gpu-memory-utilization", config::exact_number(result.memory.set));
  if (const int longest = longest_context(result); longest > 0)
    options.emplace_back("max-model-len", std::to_string(longest));
  return options;
}

config::ProgramOptions sglang_server_options(const study::Recommendation& result) {
  const study::StackChoice* const kernel = stack_of(result, "SGLang");
  if (kernel == nullptr || kv_format(result.setting.kv_cache_dtype).empty()) return {};
  const sim::ReplicaDevices& devices = result.serving.devices;
  ProgramOptions options;
  const auto add = [&options](const char* option, int size) {
    if (size > 1) options.emplace_back(option, std::to_string(size));
  };
  // Its experts' groups are data parallel in attention, within tp-size devices.
  add("tp-size", devices.shares_experts() ? devices.experts.size : devices.tensor_parallel_size);
  add("pp-size", devices.pipeline_parallel_size);
  add("ep-size", devices.experts.size);
  add("dp-size", devices.shares_experts() ? devices.ranks() : replicas_of_server(result));
  if (devices.ranks() > 1) options.emplace_back("enable-dp-attention", "");
  options.emplace_back("page-size", std::to_string(kernel->best->setting.block_size));
  options.emplace_back("kv-cache-dtype", kv_format(result.setting.kv_cache_dtype));
  options.emplace_back("max-running-requests", std::to_string(most_sequences(result) * devices.ranks()));
  options.emplace_back("chunked-prefill-size", std::to_string(result.tokens().max_num_batched_tokens));
  options.emplace_back("mem-fraction-static", config::exact_number(result.memory.set));
  if (const int longest = longest_context(result); longest > 0)
    options.emplace_back("context-length", std::to_string(longest));
  return options;
}

std::string vllm_options(const study::Recommendation& result) {
  const study::StackChoice* const kernel = stack_of(result, "vLLM");
  if (kernel == nullptr || kv_format(result.setting.kv_cache_dtype).empty()) return "";
  ProgramOptions options;
  add_sizes(result, kernel->best->setting.block_size, options);
  return line_of(options);
}

std::string serve_command(const study::Recommendation& result) {
  const std::string& model = result.serving.model.name;
  if (result.serving.machine.stack.program == "SGLang") {
    const ProgramOptions options = sglang_server_options(result);
    return options.empty() ? "" : "python3 -m sglang.launch_server --model-path " + model + " " + line_of(options);
  }
  const ProgramOptions options = vllm_server_options(result);
  return options.empty() ? "" : "vllm serve " + model + " " + line_of(options);
}

std::vector<ProgramOptions> serve_parameters(const study::Recommendation& result) {
  const ProgramOptions chosen = vllm_server_options(result);
  if (chosen.empty())
    throw InputError("--serve-params", "none of vLLM's kernels serves this load with what is recommended");
  std::vector<ProgramOptions> combinations{chosen};
  for (const std::string& size : tied_block_sizes(result)) {
    ProgramOptions other = chosen;
    for (auto& [option, value] : other)
      if (option == "block-size") value = size;
    if (other != chosen) combinations.push_back(std::move(other));
  }
  if (!result.fleet) return combinations;
  for (const std::size_t index : result.fleet->front())
    if (index != result.fleet->chosen) combinations.push_back(options_of_layout(result, result.fleet->layouts[index]));
  return combinations;
}

std::vector<ProgramOptions> bench_parameters(const study::Recommendation& result) {
  const sim::SteadyLoad& load = result.serving.load;
  const double rate = result.offered_requests_per_second * replicas_of_server(result);
  ProgramOptions options{{"dataset-name", "random"},
                         {"random-input-len", std::to_string(load.prompt_tokens)},
                         {"random-output-len", std::to_string(load.output_tokens)},
                         {"ignore-eos", ""}};
  if (rate > 0) options.emplace_back("request-rate", number(rate));
  return {options};
}

}  // namespace dculab::present
