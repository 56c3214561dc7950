#include "present/study/disaggregated_command.hpp"

#include "config/number_text.hpp"
#include "present/study/vllm_options.hpp"

namespace dculab::present {
namespace {

using config::ProgramOptions;

// Empty where vLLM can be started so.
[[nodiscard]] std::string why_no_commands(const study::DisaggregatedRecommendation& found) {
  const sim::SimulatedServer& server = found.fleet.server;
  for (const ReplicaRole role : {ReplicaRole::prefill, ReplicaRole::decode})
    if (server.machine_of(role).stack.program != "vLLM")
      return "No command lines are printed: those of disaggregated serving are vLLM's; --stack vllm predicts them.";
  if (program_kv_format(server.options.kv_cache_dtype).empty())
    return "No command lines are printed: vLLM has no such KV dtype.";
  const int prefill = found.fleet.prefill_layout().devices.tensor_parallel_size;
  if (server.model.has_delta_nets() && prefill != found.fleet.decode_layout().devices.tensor_parallel_size)
    return "No command lines are printed: vLLM's NixlConnector hands recurrent states over between replicas of one "
           "tensor parallel size only.";
  return "";
}

[[nodiscard]] std::string command_of(const study::DisaggregatedRecommendation& found, ReplicaRole role) {
  const sim::SimulatedServer& server = found.fleet.server;
  const EngineOptions& engine = server.options;
  const sim::ReplicaDevices devices = server.deployment.of(role);
  const sim::Machine& machine = server.machine_of(role);
  ProgramOptions options = vllm_layout(devices, 1);
  if (quantizes_itself(server.model, engine.weights)) options.emplace_back("quantization", "fp8");
  add_vllm_sizes({engine.block_size, engine.kv_cache_dtype, engine.max_num_seqs, engine.max_num_batched_tokens},
                 devices, options);
  options.emplace_back("gpu-memory-utilization", config::exact_number(engine.gpu_memory_utilization));
  const ModelShape part = sim::part_of_a_device(devices, machine, server.model, engine);
  if (const int longest = longest_context(machine, part, engine, devices, server.model.max_position_embeddings);
      longest > 0)
    options.emplace_back("max-model-len", std::to_string(longest));
  const std::string its = role == ReplicaRole::prefill ? "kv_producer" : "kv_consumer";
  options.emplace_back("kv-transfer-config", R"('{"kv_connector":"NixlConnector","kv_role":")" + its + R"("}')");
  return "vllm serve " + found.checkpoint + " " + line_of(options);
}

[[nodiscard]] std::string times_text(int count) { return count == 1 ? "once" : std::to_string(count) + " times"; }

}  // namespace

std::vector<std::string> disaggregated_commands(const study::DisaggregatedRecommendation& found) {
  if (!why_no_commands(found).empty()) return {};
  return {command_of(found, ReplicaRole::prefill), command_of(found, ReplicaRole::decode)};
}

std::string disaggregated_note(const study::DisaggregatedRecommendation& found) {
  if (std::string reason = why_no_commands(found); !reason.empty()) return reason;
  const study::PoolPair& pair = found.fleet.choice();
  const sim::SimulatedServer& server = found.fleet.server;
  return checkpoint_note(server.model, server.options.weights, found.checkpoint) + "Start the first line " +
         times_text(pair.prefill_replicas) + " and the second " + times_text(pair.decode_replicas) +
         ", each time on other devices, and a proxy that sends a request to a prefill and then to a decode replica. "
         "Whether vLLM's NixlConnector runs on these machines is not known here. Its first token comes from the decode "
         "replica: TTFT is longer there by the KV transfer.";
}

}  // namespace dculab::present
