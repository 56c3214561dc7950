#include "lower/index_scores.hpp"

#include <algorithm>
#include <cmath>

namespace dculab::lower {
namespace {

constexpr double kRows = 128;  // of queries and heads
constexpr double kKeys = 256;  // BLOCK_KV

constexpr double kVectorFlops = 3;  // of a score of one head: cut off, weighted, added

// How many entries are scored for one that a sequence has.
[[nodiscard]] double scored_of_each(const AttentionWork& work, double scored_entries) {
  const bool only_decodes = work.query_tokens <= work.num_sequences;
  return only_decodes ? std::max(1.0, scored_entries * work.num_sequences / work.context_tokens) : 1;
}

}  // namespace

void lower_index_scores(const Op& op, double scored_entries, const Device& device, Launch& launch) {
  const AttentionWork& work = op.attention;
  const double sequences = std::max(1, work.num_sequences), heads = work.num_query_heads;
  const double queries = work.query_tokens / sequences;  // of a sequence
  const double scored = scored_of_each(work, scored_entries);
  const double tiles = std::ceil(queries * heads / kRows);
  const double keys = std::ceil(scored * work.context_tokens / sequences / kKeys);
  // With many queries, those before the last see fewer keys.
  const double seen = work.score_pairs / std::max(1.0, work.context_tokens * queries);
  launch.grid.workgroups = launch.grid.most_workgroups = std::max(1.0, sequences * tiles * keys * seen);
  launch.arithmetic.multiply = scored * op.flops;
  if (device.kind == DeviceKind::cpu) return;
  launch.arithmetic.softmax = FlopCount(scored * kVectorFlops * heads * work.score_pairs);
  launch.arithmetic.multiply -= launch.arithmetic.softmax;
  launch.arithmetic.pipe = Pipe::matmul;
  launch.arithmetic.multiplied_in = op.activation_dtype;
  launch.arithmetic.rows = std::min(kRows, queries * heads);
  for (Access& access : launch.accesses()) {
    if (access.role == OperandRole::kv_read) access.requests = std::max(1.0, tiles * seen) * scored;
    if (access.role == OperandRole::output) access.unique *= scored;
  }
}

}  // namespace dculab::lower
