// From how many tokens a step's products of experts take longer to multiply than to read.
//
// Each expert multiplies the few rows that it gets, so a mixture needs more tokens than a dense MLP of its weights:
// num_experts / num_experts_per_tok times as many for the same rows of an expert. Skewed loads give some experts many
// rows and leave others unread.
#pragma once

#include <optional>

#include "core/engine_options.hpp"
#include "model/model_shape.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::sim {

struct ExpertBatch {
  int tokens = 0;           // of a step
  double touched = 0;       // experts of a layer that get a row
  double mean_rows = 0;     // of a touched expert
  double longest_rows = 0;  // of the expert with the most
  // Whether with a token less widening their weights takes longer than reading them already.
  bool widens_longer = false;
};

// The smallest batch from which both products of the first layer with experts spend more time in arithmetic, padding
// included, than DRAM takes to deliver their bytes, under the load of `options`. Where activations are exact, unpacking
// and widening weights is left out: it takes as long for a tile of one row as for a full one. Nothing where it is more
// than 2^20 tokens, and of a model without experts. Preconditions: problems(machine) and problems(model) are empty.
[[nodiscard]] std::optional<ExpertBatch> compute_bound_batch(const Machine& machine, const ModelShape& model,
                                                             const EngineOptions& options);

}  // namespace dculab::sim
