#include "cli/scenario/step_choices.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/scenario/checks.hpp"
#include "cli/scenario/file_options.hpp"
#include "config/yaml_text.hpp"
#include "core/kv/table.hpp"
#include "study/scenario/locate.hpp"

namespace dculab::cli {
namespace {

// So that a refusal names what was typed: the option, not the key that it stands for.
void set_origin(Node& document, const std::string& key, const std::string& origin) {
  Node* node = &document;
  for (std::size_t start = 0; node != nullptr && start < key.size();) {
    const std::size_t end = std::min(key.find('.', start), key.size());
    node = node->find(key.substr(start, end - start));
    start = end + 1;
  }
  if (node != nullptr) node->origin = origin;
}

}  // namespace

void add_stack_option(CLI::App& command, std::string& stack) {
  command.add_option(
      "--stack", stack,
      "Whose kernels: a name under stacks, a program (vllm, sglang, llama.cpp ...) or a file; default dculab");
}

void set_stack(const std::string& stack, std::vector<std::string>& set) {
  if (!stack.empty()) set.push_back("stack=" + stack);  // after figures of a stack without a name
}

void add_step_choices(CLI::App& command, StepChoices& choices) {
  reads(command.add_option("--model", choices.model, "Folder with config.json, or a name under scenarios/models"),
        study::try_find_model)
      ->required();
  reads(command.add_option("--machine", choices.machine, "Machine file, or a name under hwmodels"),
        study::try_find_machine)
      ->required();
  add_stack_option(command, choices.stack);
  command.add_option("--phase", choices.phase, "prefill or decode")->check(CLI::IsMember({"prefill", "decode"}));
  const auto add_count = [&command](const char* option, int& value, const char* help) {
    command.add_option(option, value, help)->check(at_least(1));
  };
  add_count("--batch", choices.batch, "Sequences in the step");
  add_count("--context", choices.context, "Tokens per sequence once the step is done");
  add_count("--block-size", choices.block_size, "Tokens per KV block, a power of two from 1 to 256");
  add_count("--kv-heads", choices.kv_heads, "KV heads instead of the model's own: what if it had another group size");
  command.add_option("--kv-cache-dtype", choices.kv_cache_dtype, kv_format_names());
  command.add_option("--weights", choices.weights, kWeightsHelp);
  command.add_option("--activations", choices.activations,
                     "exact, int8 (grouped weights), bf16 or fp8 (weights of it)");
  command.add_option("--set", choices.set, "key=value: any key of a scenario file")->option_text("KEY=VALUE ...");
}

config::Scenario to_scenario(const StepChoices& choices) {
  Node document =
      config::parse_yaml("command line", "schema: dculab/scenario/1\nquestion: How long does this step take?\n");
  const auto set = [&document](const std::string& option, const char* key, const std::string& value) {
    if (value.empty()) return;
    config::set_override(document, {key, value});
    set_origin(document, key, option + " " + value);
  };
  const auto set_number = [&set](const char* option, const char* key, int value) {
    set(option, key, value == 0 ? "" : std::to_string(value));
  };
  set("--model", "model", choices.model);
  set("--machine", "machine", choices.machine);
  set("--phase", "workload.phase", choices.phase);
  set_number("--batch", "workload.batch", choices.batch);
  set_number("--context", "workload.context_tokens", choices.context);
  set_number("--block-size", "kv_cache.block_size", choices.block_size);
  set_number("--kv-heads", "model.num_key_value_heads", choices.kv_heads);
  set("--kv-cache-dtype", "kv_cache.dtype", choices.kv_cache_dtype);
  set("--weights", "weights", choices.weights);
  set("--activations", "activations", choices.activations);
  for (const std::string& change : choices.set) config::set_override(document, config::parse_override(change));
  set("--stack", "stack", choices.stack);  // which keeps the figures that --set gave a stack
  return config::read_scenario("command line", document);
}

}  // namespace dculab::cli
