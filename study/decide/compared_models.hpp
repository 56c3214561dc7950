// A sweep over models: what each needs in memory, how fast it is with its best block size, and at which batches two of
// them change places.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "study/decide/model_order.hpp"
#include "study/decide/preference.hpp"
#include "study/decide/priced_points.hpp"

namespace dculab::study {

// One of the models, with the block size that is best for it.
struct SweptModel {
  ComparedModel compared;  // max_sequences: that fit, as far as the scheduler admits them
  int block_size = 0;
  std::vector<int> tied_blocks{};  // that cannot be told apart from the best, block_size among them, ascending
  bool chose_block = false;        // among several
  std::function<Evaluated(int batch)> evaluated_step{};  // steps per second
  Bytes kv_bytes_per_token;
  std::int64_t kv_cache_tokens = 0;             // that fit in memory, of whole sequences
  std::vector<std::optional<Seconds>> steps{};  // [batches]; nothing: no room
  double tokens_per_second = 0;                 // of a step of max_sequences
};

// What the change comes to at its last batch: steps per second of the faster model over those of the slower one, - 1.
struct ModelChange {
  OrderChange order;
  Cost lead;
};

// All of them at one point of the axes other than model, batch and block size.
struct ModelComparison {
  std::vector<config::Override> others;  // that point
  std::vector<SweptModel> models{};
  std::vector<ModelChange> changes{};
  bool has_short_model = false;  // one has no room for the largest batch
};

[[nodiscard]] bool sweeps_models(const config::Scenario& scenario);

// Batches of the points, ascending.
[[nodiscard]] std::vector<int> swept_batches(const std::vector<PricedPoint>& priced);

// A comparison for each point of the other axes, in the sweep's order, at `batches`. `sweep` has the scenario's points
// that `priced` are of, in their order; `machine` is what they were priced on.
[[nodiscard]] std::vector<ModelComparison> compare_models(const config::Scenario& scenario,
                                                          const std::vector<config::SweepPoint>& sweep,
                                                          const std::vector<PricedPoint>& priced,
                                                          const std::vector<int>& batches, const sim::Machine& machine);

}  // namespace dculab::study
