// The options of `predict`, and of any command that studies a single step.
#pragma once

#include <string>
#include <vector>

#include "core/error.hpp"
#include "study/scenario/step_question.hpp"

namespace CLI {
class App;
}

namespace dculab::cli {

inline constexpr const char* kWeightsHelp =
    "f32, f16, bf16, fp8_e4m3, int8, int4, int3, int2, awq, w8a8, or gptq-int2 to gptq-int8 (128 a scale; "
    "gptq-int4-g32: "
    "32, gptq-int8-channel: a row), or one of GGUF (q4_0, q4_k_m, q8_0), instead of the checkpoint's own";

void add_step_choices(CLI::App& command, study::StepQuestion& choices);
void add_stack_option(CLI::App& command, std::string& stack);

// --tensor-parallel-size, vLLM's word for a key of `set`. Precondition: --set was added before.
void add_tensor_parallel_size(CLI::App& command, std::vector<std::string>& set);

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
