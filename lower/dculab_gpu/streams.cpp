#include "lower/dculab_gpu/streams.hpp"

#include <algorithm>
#include <cmath>

#include "lower/dculab_gpu/expert_plan.hpp"
#include "lower/dculab_gpu/kv_streams.hpp"
#include "lower/dculab_gpu/product_streams.hpp"

namespace dculab::lower::dculab_gpu {
namespace {

void add_embedding(Streams& streams, const Op& op) {
  const double tokens = static_cast<double>(op.m), parts = pieces(static_cast<double>(op.n));
  streams.workgroups = tokens * parts;
  for (const Operand& rows : op.operands())  // of tokens, and of positions where they are learned
    if (rows.role == OperandRole::weight)
      streams.add({.role = OperandRole::weight, .unique = rows.unique, .run = rows.contiguous_run});
  streams.add(lookups(op, kPosition, parts));
  streams.add({.role = OperandRole::output, .unique = storage(Dtype::f32, tokens * static_cast<double>(op.n))});
}

// Loads of F32 take two instructions of 16 bytes a lane, each of which touches every line.
void load_twice(Stream& stream, double width) {
  stream.rest = RestOfLine::same_workgroup;
  stream.visits = 2;
  stream.step = storage(Dtype::f32, std::min(width, kLayerPiece));
}

// The weights of LayerNorm are widened to F32.
[[nodiscard]] Stream norm_weight(const Op& op) {
  const double rows = static_cast<double>(op.m), width = static_cast<double>(op.n);
  Stream weight{.role = OperandRole::weight, .unique = op.operands().front().unique, .workgroups = rows};
  if (op.kind != OpKind::layer_norm) return weight;
  weight.unique = storage(Dtype::f32, 2 * width);
  load_twice(weight, width);
  return weight;
}

// What a row's workgroup asks for from a value of the residual to the same value again. The residual is stored after
// the addends of its round were read, and a store counts as a touch.
[[nodiscard]] Bytes until_read_again(double width, Bytes addends) {
  return storage(Dtype::f32, width) + addends * (1 - 1 / pieces(width));
}

void add_norm(Streams& streams, const Op& op) {
  const double rows = static_cast<double>(op.m), width = static_cast<double>(op.n);
  const Dtype kept = activations_of(op);
  // The plan has the residual, and what is added to it, in one operand.
  const Bytes one = storage(op.activation_dtype, rows * width);
  const double added = std::round(op.operands()[1].unique / one) - 1;
  const bool is_first = op.stage == Stage::before_layers;  // written to the residual
  streams.workgroups = rows;
  const Bytes addends = storage(kept, added * width);
  streams.add(norm_weight(op));
  Stream residual{.role = OperandRole::activation,
                  .unique = storage(Dtype::f32, rows * width),
                  .asks = op.kind == OpKind::layer_norm ? 3.0 : 2.0,
                  .between = until_read_again(width, addends)};
  load_twice(residual, width);
  streams.add(residual);
  if (added > 0) {
    streams.add({.role = OperandRole::activation, .unique = rows * addends});
    streams.add({.role = OperandRole::output, .unique = storage(Dtype::f32, rows * width)});
  }
  streams.add({.role = OperandRole::output, .unique = storage(is_first ? Dtype::f32 : kept, rows * width)});
}

// Each expert's workgroup of the second kernel reads all choices twice.
void add_routing(Streams& streams, const Op& op, const KernelId& kernel) {
  const double tokens = static_cast<double>(op.m), experts = static_cast<double>(op.n);
  const Operand& written = op.operands()[1];  // a weight and two numbers for each choice
  streams.workgroups = std::ceil(tokens * kernel.wave_size / kRouteThreads);
  streams.add({.role = OperandRole::activation, .unique = storage(Dtype::f32, tokens * experts)});
  streams.add({.role = OperandRole::activation, .unique = written.unique / 3, .workgroups = experts, .asks = 2});
  streams.add({.role = OperandRole::output, .unique = written.unique / 3 * 4});
}

}  // namespace

void add_streams(Streams& streams, const Op& op, const KernelId& kernel, Units units, double parts) {
  if (op.m == 0 || kernel.kernel == Kernel::none) return;
  switch (op.kind) {
    case OpKind::embedding:
      return add_embedding(streams, op);
    case OpKind::rms_norm:
    case OpKind::layer_norm:
      return add_norm(streams, op);
    case OpKind::rope_and_cache:
    case OpKind::shift_sink_keys:
    case OpKind::update_block_bounds:
    case OpKind::choose_critical_blocks:
      return add_kv_op(streams, op, kernel);
    case OpKind::matmul:
      return add_product(streams, op, kernel, units, parts);
    case OpKind::route_tokens:
      return add_routing(streams, op, kernel);
    case OpKind::attention_prefill:
    case OpKind::attention_decode:
    case OpKind::attention_scores:
    case OpKind::activation_mul:
    case OpKind::qk_norm:
    case OpKind::combine_experts:
    case OpKind::output_gate:
    case OpKind::causal_conv:
    case OpKind::delta_rule:
    case OpKind::gated_norm:
    case OpKind::compress_kv:
    case OpKind::index_scores:
    case OpKind::choose_entries:
    case OpKind::mix_streams:
    case OpKind::residual_add:
    case OpKind::soft_cap:
    case OpKind::all_reduce:
    case OpKind::all_gather:
    case OpKind::dispatch_tokens:
    case OpKind::return_tokens:
      return;
  }
}

}  // namespace dculab::lower::dculab_gpu
