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
                                .num_logits = 1});
  return result;
}

Batch uniform_batch(Phase phase, int batch, int context, const KvRetention& retention, int block_size) {
  Batch result = uniform_batch(phase, batch, context);
  const int evicted = kv_tokens_evicted_at(retention, block_size, context - 1);
  const int before = kv_tokens_evicted_at(retention, block_size, context - 2);
  for (SequenceSlice& sequence : result.sequences) {
    sequence.num_computed_tokens -= evicted;
    sequence.num_evicted_tokens = evicted;
    sequence.num_newly_evicted_tokens = evicted - before;
  }
  return result;
}

}  // namespace dculab
