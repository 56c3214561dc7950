// The requests that a scenario's workload asks for, with the lengths that its file has.
#pragma once

#include <string>

#include "config/scenario_file.hpp"
#include "core/workload.hpp"
#include "model/model_shape.hpp"

namespace dculab::study {

// The workload's file: beside the scenario, or where the program is run.
[[nodiscard]] std::string find_requests_file(const config::Scenario& scenario);

// `file` is CSV (config/request_trace_file.hpp) or, with the tokenizer of the scenario's model, ShareGPT's JSON.
// Throws InputError.
[[nodiscard]] RequestWorkload resolve_requests(const config::Scenario& scenario, const ModelShape& model);

}  // namespace dculab::study
