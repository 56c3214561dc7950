// From what the user typed or wrote to what the simulator and the engine need: names become shapes and machines.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/scenario_file.hpp"
#include "core/step_plan.hpp"
#include "sim/hardware/machine.hpp"
#include "study/scenario/refuse.hpp"

namespace dculab::study {

// Looks at the machines, models and requests that a scenario names: throws files::ReservedFileError when an option
// writes one of them. For before the work, which may read some of them late.
void refuse_written_inputs(const config::Scenario& scenario);

// The model a scenario names, with its changes. Throws InputError.
[[nodiscard]] ModelShape resolve_model(const config::Scenario& scenario);

// The same of a model that was read before.
[[nodiscard]] ModelShape resolve_model(const config::Scenario& scenario, const ModelShape& read);

// What was assumed of the scenario's models, and what of them is not counted, each once (ModelShape::notes); and how
// conversations are counted.
[[nodiscard]] std::vector<std::string> model_notes(const config::Scenario& scenario);

// Names or files of the scenario's machines, those of its sweep too.
[[nodiscard]] std::vector<std::string> machines_of(const config::Scenario& scenario);

// A machine by name or file. Throws InputError.
[[nodiscard]] sim::Machine resolve_machine(const std::string& name);

// The same with the figures that the scenario changes, running the scenario's stack with those that it changes there.
[[nodiscard]] sim::Machine resolve_machine(const config::Scenario& scenario, const std::string& name);
void apply_figures(const config::Scenario& scenario, sim::Machine& machine);

// Of decode replicas, where it is another kind, running the scenario's stack; figures that the scenario changes are
// those of the others.
[[nodiscard]] std::optional<sim::Machine> resolve_decode_machine(const config::Scenario& scenario);

// What each device has of the model whose steps are priced: a part of every layer where several devices share them, the
// model itself otherwise. Throws InputError for what keeps them from sharing it, and for a deployment whose devices do
// not all work on every step.
[[nodiscard]] ModelShape resolve_part(const config::Scenario& scenario, const ModelShape& model,
                                      const sim::Machine& machine);

// The same of a replica that serves requests: of every layer, whatever stages there are.
[[nodiscard]] ModelShape resolve_replica_part(const config::Scenario& scenario, const ModelShape& model,
                                              const sim::Machine& machine);

// The engine options of a scenario on a kind of machine: the CPU engine has its own tiling and F32 activations.
[[nodiscard]] EngineOptions resolve_options(const config::Scenario& scenario, const ModelShape& model,
                                            lower::DeviceKind kind);

// The same with the defaults of the machine's stack. Throws InputError for what none of its kernels serves.
[[nodiscard]] EngineOptions resolve_options(const config::Scenario& scenario, const ModelShape& model,
                                            const sim::Machine& machine);

// The batch of a step workload, its decodes with the drafts that options.speculative_config has them verify. Throws
// InputError when the context is longer than the model's.
[[nodiscard]] Batch resolve_batch(const config::Workload& workload, const ModelShape& model,
                                  const EngineOptions& options);

// Whether requests are served by pools for prefill and decode, which a study with compare has a closed form for.
[[nodiscard]] bool has_pools(const config::Scenario& scenario);

}  // namespace dculab::study
