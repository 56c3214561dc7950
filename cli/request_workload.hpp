// The requests that a scenario's workload asks for, with the lengths that its file has.
#pragma once

#include "config/scenario_file.hpp"
#include "core/model_shape.hpp"
#include "core/workload.hpp"

namespace dculab::cli {

// `file` is CSV (config/request_trace_file.hpp) or, with the tokenizer of the scenario's model, ShareGPT's JSON.
// Throws InputError.
[[nodiscard]] RequestWorkload resolve_requests(const config::Scenario& scenario, const ModelShape& model);

}  // namespace dculab::cli
