// What every kernel must compute: double precision, one plain loop nest each. Slow, and the truth for the others.
#pragma once

#include "kernels/ops.hpp"

namespace dculab::kernels::reference {

void matmul(const MatmulArgs& args);
void rms_norm(const RmsNormArgs& args);
void embedding(const EmbeddingArgs& args);
void silu_mul(const SiluMulArgs& args);
void rope_and_cache(const RopeAndCacheArgs& args);
void paged_attention(const PagedAttentionArgs& args);

}  // namespace dculab::kernels::reference
