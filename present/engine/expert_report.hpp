// Experts of a mixture, as cells of a table, as a line and as JSON: which of them the engine's tokens chose, and from
// how many tokens on their products are bound by arithmetic.
#pragma once

#include <string>
#include <vector>

#include "core/engine_options.hpp"
#include "core/expert_histogram.hpp"
#include "model/model_shape.hpp"
#include "present/output/report.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::present {

// "experts/step", "hottest": distinct experts of a layer in a step, and the share of its choices that the most chosen
// gets, both on average over the layers.
[[nodiscard]] std::vector<std::string> expert_columns();

// Under those; dashes of a model without experts.
[[nodiscard]] std::vector<Cell> expert_cells(const ExpertHistogram& experts);

// A line that says what the columns mean.
[[nodiscard]] std::string expert_heading();

// The two figures, and the choices by layer and expert. Precondition: not empty.
[[nodiscard]] Json expert_json(const ExpertHistogram& experts);

// "experts' products are compute-bound from 620 tokens a step (38.8 rows an expert, 38.8 the most)", with even loads
// and with that of `options`. Precondition: the model has experts.
[[nodiscard]] std::string compute_bound_text(const sim::Machine& machine, const ModelShape& model,
                                             const EngineOptions& options);

// sim::ExpertBatch; null where there is none.
[[nodiscard]] Json compute_bound_json(const sim::Machine& machine, const ModelShape& model,
                                      const EngineOptions& options);

}  // namespace dculab::present
