// The teaching table of one layer: FLOP, bytes and arithmetic intensity of every operation, for any model.
//
// Conventions
// - Row by row as the lecture numbers them; a gated MLP adds a row, which takes the number of its partner.
// - Attention rows are over all heads of all sequences. Under MHA every byte of a row scales with the number of heads,
//   so the intensity is the lecture's, which is per head; under GQA the query heads of a group share K or V and the
//   intensity rises towards the group size.
// - As in the lecture, every operation reads its inputs from memory and writes its output there, scores included (no
//   fused attention), and prefill scores all L x L pairs (no causal halving). What a real kernel moves is `predict`.
// - Latent attention (MLA) is expanded to K and V of all heads in prefill. In decode it is absorbed: every head attends
//   to the same latents. A mixture reads the weights of as many experts as its tokens choose on average.
// - In decode L tokens are cached already, and the new one attends to L + 1.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "core/batch.hpp"
#include "core/dtype.hpp"
#include "core/units.hpp"
#include "model/model_shape.hpp"
#include "sim/tables/lecture.hpp"

namespace dculab::sim {

struct IntensityRow {
  int number = 0;                // in the lecture's table of the same phase
  std::string_view op;           // "q_proj", "scores", ...
  std::string_view computation;  // as the lecture writes it
  FlopCount flops;
  Bytes bytes;                                    // 0 for a view: partition, merge, concatenation move nothing
  std::optional<FlopsPerByte> intensity;          // nothing for a view
  LectureFormula formula = LectureFormula::none;  // that this row obeys
  Phase phase = Phase::prefill;
};

struct IntensityTable {
  std::vector<IntensityRow> rows;  // of one layer
  IntensityRow total;              // of the same
};

// Of layer `layer`. Preconditions: problems(model) is empty, tokens >= 1 in prefill and >= 0 in decode, batch >= 1.
// Throws InputError for a gated delta net, which attends to no tokens.
[[nodiscard]] IntensityTable intensity_table(const ModelShape& model, int layer, Phase phase, int tokens, int batch,
                                             Dtype dtype);

}  // namespace dculab::sim
