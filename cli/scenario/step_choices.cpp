#include "cli/scenario/step_choices.hpp"

#include <CLI/CLI.hpp>

#include "cli/scenario/checks.hpp"
#include "cli/scenario/file_options.hpp"
#include "core/kv/table.hpp"
#include "study/scenario/locate.hpp"

namespace dculab::cli {

void add_stack_option(CLI::App& command, std::string& stack) {
  command.add_option(
      "--stack", stack,
      "Software stack: a name under stacks, a program (vllm, sglang, llama.cpp ...) or a file; default dculab");
}

void add_tensor_parallel_size(CLI::App& command, std::vector<std::string>& set) {
  const std::string key = "deployment.tensor_parallel_size=";
  command
      .add_option_function<int>(
          "--tensor-parallel-size", [&set, key](int devices) { set.push_back(key + std::to_string(devices)); },
          "Devices that share every layer of the model")
      ->check(at_least(1));
}

void add_step_choices(CLI::App& command, study::StepQuestion& choices) {
  reads(command.add_option("--model", choices.model, "Folder with config.json, or a name under scenarios/models"),
        study::try_find_model)
      ->required();
  reads(command.add_option("--machine", choices.machine, "Machine file, or a name under hwmodels"),
        study::try_find_machine)
      ->required();
  add_stack_option(command, choices.stack);
  command.add_option("--phase", choices.phase, "prefill or decode")->check(CLI::IsMember({"prefill", "decode"}));
  const auto add_count = [&command](const char* option, int& value, const char* help) {
    return command.add_option(option, value, help)->check(at_least(1));
  };
  add_count("--batch", choices.batch, "Sequences in the step");
  add_count("--context", choices.context, "Tokens per sequence after the step");
  add_count("--block-size", choices.block_size, "Tokens per KV block, a power of two from 1 to 256")->default_str("16");
  add_count("--kv-heads", choices.kv_heads, "KV heads, to try another group size; default: the model's");
  command.add_option("--kv-cache-dtype", choices.kv_cache_dtype, kv_format_names() + kKvWordsHelp)->default_str("f16");
  command.add_option("--weights", choices.weights, kWeightsHelp);
  command.add_option("--activations", choices.activations,
                     "exact, int8 (grouped weights), bf16 or fp8 (weights of it)");
  command.add_option("--set", choices.set, "key=value: any key of a scenario file")->option_text("KEY=VALUE ...");
}

}  // namespace dculab::cli
