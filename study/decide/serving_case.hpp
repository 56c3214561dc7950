// The part of a recommendation that no setting changes: model, machine, the devices of a replica, and the load.
#pragma once

#include <optional>

#include "config/scenario_file.hpp"
#include "core/workload.hpp"
#include "model/model_shape.hpp"
#include "sim/hardware/machine.hpp"
#include "sim/study/serving_setting.hpp"

namespace dculab::study {

// What one of `replicas` gets where a router takes them in turn: the same lengths, at its part of the rate and in more
// even gaps than all of them; of recorded requests every replicas-th.
[[nodiscard]] RequestWorkload share_of(RequestWorkload workload, int replicas);

// Requests per second of a workload; nothing where all are there at once.
[[nodiscard]] std::optional<double> rate_of(const RequestWorkload& workload);

// Tokens of the longest one, prompt and answer.
[[nodiscard]] int longest_request(const RequestWorkload& workload);

// The means of a workload's lengths. `sequences`: most at a time.
[[nodiscard]] sim::SteadyLoad mean_load(const RequestWorkload& workload, const ServiceLevel& slo,
                                        std::optional<int> sequences);

// Of a replica of the scenario's deployment. Throws InputError for what keeps its devices from sharing the model, for
// what none of the stack's kernels serves, and for requests that are longer than the model allows.
[[nodiscard]] sim::ServingCase serving_case(const config::Scenario& scenario, const sim::Machine& machine,
                                            const ModelShape& model, const sim::SteadyLoad& load);

// Whether an engine can have the setting.
[[nodiscard]] bool is_sound(const sim::ServingCase& serving, const sim::Setting& setting);

// The engine's options with the setting, with `batch` sequences for each scheduler.
[[nodiscard]] EngineOptions options_with(const sim::ServingCase& serving, const sim::Setting& setting, int batch);

}  // namespace dculab::study
