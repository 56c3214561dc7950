// Experts of a mixture, as cells of a table, as a line and their fields in JSON: which of them the engine's tokens
// chose, and from how many tokens on their products are bound by arithmetic.
#pragma once

#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/engine_options.hpp"
#include "core/expert_histogram.hpp"
#include "fields/field_list.hpp"
#include "model/model_shape.hpp"
#include "present/output/report.hpp"
#include "sim/hardware/machine.hpp"
#include "sim/tables/expert_batch.hpp"

namespace dculab::present {

// "experts/step", "hottest": distinct experts of a layer in a step, and the share of its choices that the most chosen
// gets, both on average over the layers.
[[nodiscard]] std::vector<std::string> expert_columns();

// Under those; dashes of a model without experts.
[[nodiscard]] std::vector<Cell> expert_cells(const ExpertHistogram& experts);

// A line that says what the columns mean.
[[nodiscard]] std::string expert_heading();

// "experts' products are compute-bound from 620 tokens a step (38.8 rows an expert, 38.8 the most)", with even loads
// and with that of `options`. Precondition: the model has experts.
[[nodiscard]] std::string compute_bound_text(const sim::Machine& machine, const ModelShape& model,
                                             const EngineOptions& options);

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<ExpertHistogram> {
  using Experts = ExpertHistogram;
  static constexpr std::string_view id = "experts";
  static constexpr std::string_view doc = "Which experts the tokens chose.";
  static constexpr auto fields =
      std::tuple(field("distinct_per_step", "distinct experts of a layer in a step, mean of the layers", unit::count,
                       [](const Experts& experts) { return experts.distinct_experts(); }),
                 field("hottest_share", "of a layer's choices, that the most chosen expert gets, mean of the layers",
                       unit::share, [](const Experts& experts) { return experts.hottest_share(); }),
                 field("choices", "by layer and expert", unit::count, &Experts::choices));
};

template <>
struct FieldList<sim::ExpertBatch> {
  using Batch = sim::ExpertBatch;
  static constexpr std::string_view id = "expert_batch";
  static constexpr std::string_view doc = "The smallest step whose products of experts are bound by arithmetic.";
  static constexpr auto fields =
      std::tuple(field("tokens", "of the step", unit::tokens, &Batch::tokens),
                 field("touched_experts", "of a layer, that get a row", unit::count, &Batch::touched),
                 field("mean_rows", "of a touched expert", unit::count, &Batch::mean_rows),
                 field("longest_rows", "of the expert with the most", unit::count, &Batch::longest_rows),
                 field("widens_longer", "with a token less, widening weights takes longer than reading them",
                       &Batch::widens_longer));
};

}  // namespace dculab
