#include "lower/index_scores.hpp"

#include <algorithm>
#include <cmath>

namespace dculab::lower {
namespace {

constexpr double kRows = 128;  // of queries and heads
constexpr double kKeys = 256;  // BLOCK_KV

}  // namespace

void lower_index_scores(const Op& op, const Device& device, Launch& launch) {
  const AttentionWork& work = op.attention;
  const double sequences = std::max(1, work.num_sequences), heads = work.num_query_heads;
  const double queries = work.query_tokens / sequences;  // of a sequence
  const double tiles = std::ceil(queries * heads / kRows), keys = std::ceil(work.context_tokens / sequences / kKeys);
  // With many queries, those before the last see fewer keys.
  const double seen = work.score_pairs / std::max(1.0, work.context_tokens * queries);
  launch.grid.workgroups = launch.grid.most_workgroups = std::max(1.0, sequences * tiles * keys * seen);
  launch.arithmetic.multiply = op.flops;
  if (device.kind == DeviceKind::cpu) return;
  launch.arithmetic.pipe = Pipe::matmul;
  launch.arithmetic.multiplied_in = op.activation_dtype;
  launch.arithmetic.rows = std::min(kRows, queries * heads);
  for (Access& access : launch.accesses())
    if (access.role == OperandRole::kv_read) access.requests = std::max(1.0, tiles * seen);
}

}  // namespace dculab::lower
