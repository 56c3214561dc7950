// The two forms of latent attention (MLA) beside each other: latents expanded to K and V of every head, or projections
// absorbed into queries and outputs. Both compute the same.
//
//   expanded  kv_b_proj for all tokens of the context, then 2 (d_qk + d_v) FLOP for each head, query and token seen
//   absorbed  products of each head for the new tokens, then 2 (2 r + d_R) FLOP for each head, query and token seen,
//             over latents that all heads share
//
// Expanding pays where many new tokens see a context: its cost grows with the context, that of absorbing with new
// tokens times context, by (2 r + d_R) / (d_qk + d_v): 3.4 for DeepSeek-V3.
#pragma once

#include <span>
#include <vector>

#include "core/engine_options.hpp"
#include "core/units.hpp"
#include "model/model_shape.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::sim {

struct LatentForms {
  int new_tokens = 0;          // of each sequence
  Seconds expanded, absorbed;  // of one layer: attention and the products that only one form has

  [[nodiscard]] LatentForm cheaper() const { return absorbed <= expanded ? LatentForm::absorb : LatentForm::expand; }
};

// One row for each of `new_tokens`, in steps of `batch` sequences that have `context` tokens with the new ones.
// Preconditions: problems(machine) and problems(model) are empty, some layer has latents, 1 <= new_tokens <= context.
[[nodiscard]] std::vector<LatentForms> latent_forms(const Machine& machine, const ModelShape& model,
                                                    const EngineOptions& options, int batch, int context,
                                                    std::span<const int> new_tokens);

}  // namespace dculab::sim
