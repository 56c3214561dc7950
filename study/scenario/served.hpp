// Whether the kernels of a machine's stack do what a model and its options ask for.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/engine_options.hpp"
#include "fields/node.hpp"
#include "model/model_shape.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::study {

// Throws InputError where the program runs fewer sequences at a time.
void require_sequences(const sim::Stack& stack, int sequences);

// Throws InputError when no kernel of the machine's stack does what the model and the options ask for, with attention
// in `phases`. Our own kernels are not refused: see unserved().
void require_served(const sim::Machine& machine, const ModelShape& model, const EngineOptions& options,
                    const std::vector<Phase>& phases = {Phase::prefill, Phase::decode});

// Throws InputError for a parameter among `stack_figures`, which a scenario sets, of a kernel that the stack lists and
// that runs none of the model's attention in `phases`. What the stack's own file chooses may be idle.
void refuse_idle_parameters(std::span<const Node> stack_figures, const sim::Machine& machine, const ModelShape& model,
                            const EngineOptions& options, const std::vector<Phase>& phases);

// Why the engine refuses the KV cache that is priced: its format, its policy, its heads. Empty where it does not, and
// where kernels of others are priced. `model`: what each device has of it.
[[nodiscard]] std::vector<std::string> refused_kv(const sim::Machine& machine, const ModelShape& model,
                                                  const EngineOptions& options);

// The same and all else that our own kernels do not do on the machine although it is priced, what is not known of
// others', and what no price has; empty where there is nothing of these.
[[nodiscard]] std::vector<std::string> unserved(const sim::Machine& machine, const ModelShape& model,
                                                const EngineOptions& options);

}  // namespace dculab::study
