// How steeply each head's attention falls off with distance in a model with ALiBi.
#pragma once

#include <vector>

namespace dculab::kernels {

// For n heads, n a power of two: head h falls by 2^(-8 (h + 1) / n) per token. Otherwise the slopes of the largest
// power of two below n, then every other slope of twice that power, as BLOOM and Hugging Face do.
// Source: Press et al., arXiv:2108.12409, section 3, and the authors' get_slopes. Precondition: num_heads >= 1.
[[nodiscard]] std::vector<float> alibi_slopes(int num_heads);

}  // namespace dculab::kernels
