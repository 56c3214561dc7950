#include "lower/delta_rule.hpp"

#include <algorithm>
#include <cmath>

#include "model/attention_kind.hpp"

namespace dculab::lower {
namespace {

constexpr double kDecodeColumns = 8;  // BV
constexpr int kPrefillKernels = 6;

[[nodiscard]] Bytes handed_on(const Op& op, double tokens) {
  const AttentionWork& work = op.attention;
  const Bytes factors = 2 * (storage(Dtype::f32, kDeltaChunk) + storage(op.activation_dtype, kDeltaChunk));
  const Bytes rows = 2 * storage(op.activation_dtype, work.head_dim + 2.0 * work.value_dim);
  const Bytes state =
      2 * storage(op.activation_dtype, static_cast<double>(work.head_dim) * work.value_dim) / kDeltaChunk;
  return (factors + rows + state) * (tokens * work.num_kv_heads);
}

}  // namespace

void lower_delta_rule(const Op& op, const Device& device, Launch& launch) {
  const AttentionWork& work = op.attention;
  const bool is_decode = work.query_tokens <= work.num_sequences;
  const double heads = static_cast<double>(work.num_sequences) * work.num_kv_heads;
  const double columns = std::ceil(work.value_dim / kDecodeColumns);
  const double chunks = std::ceil(work.query_tokens / kDeltaChunk) * work.num_kv_heads;
  launch.grid.workgroups = launch.grid.most_workgroups = is_decode ? heads * columns : std::max(chunks, heads);
  launch.arithmetic.multiply = op.flops;
  if (is_decode || device.kind == DeviceKind::cpu) return;
  launch.kernels = kPrefillKernels;
  launch.arithmetic.pipe = Pipe::matmul;
  launch.arithmetic.multiplied_in = op.activation_dtype;
  launch.arithmetic.rows = kDeltaChunk;
  for (Access& access : launch.accesses())
    if (access.role == OperandRole::output) access.unique += handed_on(op, work.query_tokens);
}

}  // namespace dculab::lower
