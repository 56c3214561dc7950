// Weights of the heads that are pooled, one for each head, fitted to what is lost on calibration text.
#pragma once

#include <vector>

#include "engine/regroup/head_groups.hpp"
#include "engine/regroup/head_moments.hpp"
#include "kernels/ops.hpp"
#include "model/model_shape.hpp"

namespace dculab::engine {

// What the heads of a group are multiplied by before they are added; of any sign, and any sum.
struct HeadFactors {
  std::vector<double> k, v;  // [num_key_value_heads before]; empty: none were fitted
};

// The scalars w of WGQA (Chinnakonduru and Mohapatra, arXiv:2407.10855: one for each head of K and of V), in closed
// form. A group's head is s = sum over its heads g of w_g a_g, which all of them are replaced by, and w makes least,
// summed over tokens and the heads h of the group:
//   K: (q_h . (k_h - s))^2, Q and K taken as independent
//   V: |O_h (v_h - s)|^2
// Both are squares in w: normal equations of as many unknowns as the group has heads. Where these are singular (heads
// that are equal), the solution of least norm. `o_proj`: [hidden_size, query_width].
[[nodiscard]] HeadFactors fitted_factors(const ModelShape& shape, const HeadMoments& moments,
                                         const kernels::WeightView& o_proj, const HeadGroups& groups);

}  // namespace dculab::engine
