// What H2O's sums must be. Arguments and shapes: kernels/kv/heavy_hitters.hpp.
#pragma once

#include "kernels/kv/heavy_hitters.hpp"

namespace dculab::kernels::reference {

// The sums are rounded to F32 after each addition, as they are kept.
void attention_scores(const AttentionScoresArgs& args);

}  // namespace dculab::kernels::reference
