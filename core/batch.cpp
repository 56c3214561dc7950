#include "core/batch.hpp"

namespace dculab {

Batch uniform_batch(Phase phase, int batch, int context) {
  const int new_tokens = phase == Phase::decode ? 1 : context;
  Batch result;
  result.sequences.reserve(static_cast<std::size_t>(batch));
  for (int index = 0; index < batch; ++index)
    result.sequences.push_back({.id = index,
                                .phase = phase,
                                .num_computed_tokens = context - new_tokens,
                                .num_new_tokens = new_tokens,
                                .needs_logits = true});
  return result;
}

}  // namespace dculab
