// What H2O (arXiv:2306.14048) keeps tokens by.
#pragma once

#include "kernels/ops.hpp"

namespace dculab::kernels {

// How much attention each cached token gets from the new ones: the softmax weights that paged attention multiplies V
// by, summed over the heads of the group.
struct AttentionScoresArgs {
  PagedAttentionArgs attention;  // `out` is not used
  // [num_seqs] pointers to [num_kv_heads, sums_stride]: each new token adds to the sums of the tokens that it sees, by
  // their place in the block table, one new token after the other, heads in order.
  float* const* sums = nullptr;
  int sums_stride = 0;  // >= every context
};

}  // namespace dculab::kernels
