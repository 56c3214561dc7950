#include "present/study/serve_command.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "config/number_text.hpp"
#include "core/error.hpp"
#include "present/output/table_text.hpp"
#include "present/study/vllm_options.hpp"

namespace dculab::present {
namespace {

using config::ProgramOptions;

// The first of a program's stacks whose kernels serve the load.
[[nodiscard]] const study::StackChoice* stack_of(const study::Recommendation& result, std::string_view program) {
  for (const study::StackChoice& each : result.stacks)
    if (each.best && each.limits.stack.program == program) return &each;
  return nullptr;
}

// How many replicas one command starts: vLLM joins the ranks of a mixture of experts into one group, so there each
// replica is a command.
[[nodiscard]] int replicas_of_command(const study::Recommendation& result, const sim::ReplicaDevices& devices,
                                      int replicas) {
  if (result.serving.model.has_experts()) return 1;
  return result.fleet ? std::min(replicas, result.fleet->offer.replicas_of_server(devices)) : replicas;
}
[[nodiscard]] int replicas_of_command(const study::Recommendation& result) {
  return replicas_of_command(result, result.serving.devices, result.replicas);
}

// 0 where a sequence of the model's longest context fits.
[[nodiscard]] int longest_context(const study::Recommendation& result) {
  const sim::ServingCase& serving = result.serving;
  EngineOptions options = study::options_with(serving, result.setting, result.max_num_seqs);
  options.max_num_batched_tokens = result.tokens().max_num_batched_tokens;
  options.gpu_memory_utilization = result.memory.chosen;
  return present::longest_context(serving.machine, sim::model_of(serving, result.setting), options, serving.devices,
                                  serving.model.max_position_embeddings);
}

[[nodiscard]] bool quantizes_itself(const study::Recommendation& result) {
  return present::quantizes_itself(result.serving.model, result.serving.options.weights);
}

[[nodiscard]] VllmSizes vllm_sizes(const study::Recommendation& result, int batch, int block_size) {
  return {block_size, result.setting.kv_cache_dtype, batch, result.tokens().max_num_batched_tokens};
}

// Those that cannot be told apart from the best, as far as vLLM's kernels take them.
[[nodiscard]] std::vector<int> tied_block_sizes(const study::Recommendation& result, const study::StackChoice& kernel) {
  std::vector<int> tied;
  for (const study::Decision& decision : result.decisions)
    for (std::size_t index = 0; decision.key == "kv_cache.block_size" && index < decision.candidates.size(); ++index) {
      const int size = decision.candidates[index].setting.block_size;
      const bool is_known = std::ranges::find(kernel.limits.block_sizes, size) != kernel.limits.block_sizes.end();
      if (decision.verdict.is_tied(index) && is_known) tied.push_back(size);
    }
  return tied;
}

[[nodiscard]] const study::StackChoice* usable(const study::Recommendation& result, std::string_view program) {
  const study::StackChoice* const kernel = stack_of(result, program);
  if (kernel == nullptr || program_kv_format(result.setting.kv_cache_dtype).empty()) return nullptr;
  const std::vector<Dtype> known = study::known_kv_dtypes(kernel->limits, result.serving.machine);
  return std::ranges::find(known, result.setting.kv_cache_dtype) == known.end() && !result.kv_dtype_asked ? nullptr
                                                                                                          : kernel;
}

}  // namespace

ProgramOptions vllm_server_options(const study::Recommendation& result) {
  const study::StackChoice* const kernel = usable(result, "vLLM");
  if (kernel == nullptr) return {};
  const sim::ReplicaDevices& devices = result.serving.devices;
  ProgramOptions options = vllm_layout(devices, replicas_of_command(result));
  if (quantizes_itself(result)) options.emplace_back("quantization", "fp8");
  add_vllm_sizes(vllm_sizes(result, result.max_num_seqs, kernel->best->setting.block_size), devices, options);
  options.emplace_back("gpu-memory-utilization", config::exact_number(result.memory.chosen));
  if (const int longest = longest_context(result); longest > 0)
    options.emplace_back("max-model-len", std::to_string(longest));
  return options;
}

ProgramOptions sglang_server_options(const study::Recommendation& result) {
  const study::StackChoice* const kernel = usable(result, "SGLang");
  if (kernel == nullptr) return {};
  const sim::ReplicaDevices& devices = result.serving.devices;
  ProgramOptions options;
  // Its experts' groups are data parallel in attention, within tp-size devices.
  add_size("tp-size", devices.shares_experts() ? devices.experts.size : devices.tensor_parallel_size, options);
  add_size("pp-size", devices.pipeline_parallel_size, options);
  add_size("ep-size", devices.experts.size, options);
  add_size("dp-size", devices.shares_experts() ? devices.ranks() : replicas_of_command(result), options);
  if (devices.ranks() > 1) options.emplace_back("enable-dp-attention", "");
  if (quantizes_itself(result)) options.emplace_back("quantization", "fp8");
  options.emplace_back("page-size", std::to_string(kernel->best->setting.block_size));
  options.emplace_back("kv-cache-dtype", program_kv_format(result.setting.kv_cache_dtype));
  // Of all ranks, which share both.
  const int sequences = result.max_num_seqs * devices.pipeline_parallel_size * devices.ranks();
  options.emplace_back("max-running-requests", std::to_string(sequences));
  options.emplace_back("chunked-prefill-size",
                       std::to_string(result.tokens().max_num_batched_tokens * devices.ranks()));
  constexpr double kHundredth = 100;
  const double managed = std::floor((result.memory.chosen - result.memory.unmanaged) * kHundredth) / kHundredth;
  options.emplace_back("mem-fraction-static", config::exact_number(managed));
  if (const int longest = longest_context(result); longest > 0)
    options.emplace_back("context-length", std::to_string(longest));
  return options;
}

std::string vllm_options(const study::Recommendation& result) {
  const study::StackChoice* const kernel = stack_of(result, "vLLM");
  if (kernel == nullptr || program_kv_format(result.setting.kv_cache_dtype).empty()) return "";
  ProgramOptions options;
  add_vllm_sizes(vllm_sizes(result, result.max_num_seqs, kernel->best->setting.block_size), result.serving.devices,
                 options);
  return line_of(options);
}

std::string serve_command(const study::Recommendation& result) {
  const std::string& model = result.checkpoint;
  const std::string& program = result.serving.machine.stack.program;
  if (program == "SGLang") {
    const ProgramOptions options = sglang_server_options(result);
    return options.empty() ? "" : "python3 -m sglang.launch_server --model-path " + model + " " + line_of(options);
  }
  if (program != "vLLM" && !result.serving.machine.stack.is_own()) return "";
  const ProgramOptions options = vllm_server_options(result);
  return options.empty() ? "" : "vllm serve " + model + " " + line_of(options);
}

std::string command_note(const study::Recommendation& result) {
  const sim::ServingCase& serving = result.serving;
  std::string note =
      serving.machine.stack.is_own()
          ? "This command starts vLLM, but the figures are for dculab's kernels; --stack vllm predicts vLLM's. "
          : "";
  note += checkpoint_note(serving.model, serving.options.weights, result.checkpoint);
  const int each = replicas_of_command(result);
  const int commands = (result.replicas + each - 1) / each;
  if (result.fleet && result.fleet->offer.servers_of_replica(serving.devices) > 1)
    note += "A replica spans " + std::to_string(result.fleet->offer.servers_of_replica(serving.devices)) +
            " servers; the program must be told to use them together (vLLM: Ray, or --nnodes). ";
  if (commands > 1)
    note += "Start it " + std::to_string(commands) + " times, each time on other devices" +
            (result.replicas % each == 0
                 ? ""
                 : ", the last one with --data-parallel-size " + std::to_string(result.replicas % each)) +
            ". ";
  if (!note.empty()) note.pop_back();
  return note;
}

std::vector<ProgramOptions> serve_parameters(const study::Recommendation& result) {
  const ProgramOptions chosen = vllm_server_options(result);
  if (chosen.empty())
    throw InputError("--serve-params", "none of vLLM's kernels serves this load with what is recommended");
  const study::StackChoice& kernel = *usable(result, "vLLM");
  std::vector<ProgramOptions> combinations{chosen};
  for (const int size : tied_block_sizes(result, kernel)) {
    ProgramOptions other = chosen;
    for (auto& [option, value] : other)
      if (option == "block-size") value = std::to_string(size);
    if (other != chosen) combinations.push_back(std::move(other));
  }
  if (!result.fleet) return combinations;
  for (const std::size_t index : result.fleet->rivals()) {
    const study::Layout& layout = result.fleet->layouts[index];
    if (layout.setting.kv_cache_dtype != result.setting.kv_cache_dtype) continue;
    ProgramOptions other = vllm_layout(layout.devices, replicas_of_command(result, layout.devices, layout.replicas));
    add_vllm_sizes(vllm_sizes(result, layout.served.batch, kernel.best->setting.block_size), layout.devices, other);
    other.emplace_back("gpu-memory-utilization", config::exact_number(result.serving.options.gpu_memory_utilization));
    combinations.push_back(std::move(other));
  }
  return combinations;
}

std::vector<ProgramOptions> bench_parameters(const study::Recommendation& result) {
  const sim::SteadyLoad& load = result.serving.load;
  const double rate = result.offered_requests_per_second * replicas_of_command(result);
  ProgramOptions options{{"dataset-name", "random"},
                         {"random-input-len", std::to_string(load.prompt_tokens)},
                         {"random-output-len", std::to_string(load.output_tokens)},
                         {"ignore-eos", ""}};
  if (rate > 0) options.emplace_back("request-rate", config::exact_number(rate));
  return {options};
}

}  // namespace dculab::present
