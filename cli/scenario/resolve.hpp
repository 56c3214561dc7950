// From what the user typed or wrote to what the simulator and the engine need: names become shapes and machines.
#pragma once

#include <string>
#include <vector>

#include "config/scenario_file.hpp"
#include "core/error.hpp"
#include "core/step_plan.hpp"
#include "sim/hardware/machine.hpp"

namespace CLI {
class App;
}

namespace dculab::cli {

// One step to price or to run: the options of `predict`, and of any command that studies a single step.
struct StepChoices {
  std::string model;
  std::string machine;
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

void add_step_choices(CLI::App& command, StepChoices& choices);

// The choices as a scenario, so that flags and files go through the same checks.
[[nodiscard]] config::Scenario to_scenario(const StepChoices& choices);

// Looks at the machines, models and requests that a scenario names: throws files::ReservedFileError when an option
// writes one of them. For before the work, which may read some of them late.
void refuse_written_inputs(const config::Scenario& scenario);

// The model a scenario names, with its changes. Throws InputError.
[[nodiscard]] ModelShape resolve_model(const config::Scenario& scenario);

// The same of a model that was read before.
[[nodiscard]] ModelShape resolve_model(const config::Scenario& scenario, const ModelShape& read);

// A machine by name or file. Throws InputError.
[[nodiscard]] sim::Machine resolve_machine(const std::string& name);

// The same with the figures that the scenario changes.
[[nodiscard]] sim::Machine resolve_machine(const config::Scenario& scenario, const std::string& name);
void apply_figures(const config::Scenario& scenario, sim::Machine& machine);

// The engine options of a scenario on a kind of machine: the CPU engine has its own tiling and F32 activations.
[[nodiscard]] EngineOptions resolve_options(const config::Scenario& scenario, const ModelShape& model,
                                            sim::MachineKind kind);

// The batch of a step workload. Throws InputError when the context is longer than the model's.
[[nodiscard]] Batch resolve_batch(const config::Workload& workload, const ModelShape& model,
                                  const EngineOptions& options);

// What was given for an option, as `parse` reads it; a refusal names the option.
template <class Parse>
[[nodiscard]] auto parse_option(const char* option, const std::string& text, Parse parse) {
  try {
    return parse(text);
  } catch (const InputError& error) {
    throw InputError(option, error.what());
  }
}

// Throws InputError when the model's weights do not go with the activations that are asked for.
void require_activations(ActivationMode activations, const ModelShape& model);

// Throws InputError for what the scenario asks and the price of single steps cannot answer: serving, more than one
// device.
void refuse_unsupported(const config::Scenario& scenario);

}  // namespace dculab::cli
