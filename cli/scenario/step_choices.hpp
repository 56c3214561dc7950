// The options of `predict`, and of any command that studies a single step.
#pragma once

#include <string>
#include <vector>

#include "config/scenario_file.hpp"
#include "core/error.hpp"

namespace CLI {
class App;
}

namespace dculab::cli {

struct StepChoices {
  std::string model;
  std::string machine;
  std::string stack{};  // "": dculab
  std::string phase = "decode";
  int batch = 1;
  int context = 1024;
  int block_size = 0;  // 0 and empty: the default
  int kv_heads = 0;
  std::string kv_cache_dtype;
  std::string weights;
  std::string activations{};
  std::vector<std::string> set;  // key=value, any scenario key
};

inline constexpr const char* kWeightsHelp =
    "f32, f16, bf16, fp8_e4m3, int8, int4, int3, int2, or gptq-int2 to gptq-int8 (128 a scale; gptq-int4-g32: 32, "
    "gptq-int8-channel: a row), instead of the checkpoint's own";

void add_step_choices(CLI::App& command, StepChoices& choices);
void add_stack_option(CLI::App& command, std::string& stack);
// As if it had been `--set stack=STACK`, before all else.
void set_stack(const std::string& stack, std::vector<std::string>& set);

// The choices as a scenario, so that flags and files go through the same checks.
[[nodiscard]] config::Scenario to_scenario(const StepChoices& choices);

// What was given for an option, as `parse` reads it; a refusal names the option.
template <class Parse>
[[nodiscard]] auto parse_option(const char* option, const std::string& text, Parse parse) {
  try {
    return parse(text);
  } catch (const InputError& error) {
    throw InputError(option, error.what());
  }
}

}  // namespace dculab::cli
