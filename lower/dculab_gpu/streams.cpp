#include "lower/dculab_gpu/streams.hpp"

#include <algorithm>
#include <cmath>

#include "core/kv/kivi.hpp"
#include "lower/dculab_gpu/expert_plan.hpp"
#include "lower/dculab_gpu/product_streams.hpp"
#include "lower/kv/kv_lowering.hpp"

namespace dculab::lower::dculab_gpu {
namespace {

constexpr double kLayerPiece = 2048;  // numbers of a row that a workgroup serves (kernels/gpu/layers/layers.hip.hpp)
constexpr double kRotationThreads = 256;  // pairs that a workgroup of part_rotary_embedding_kernel turns
constexpr Bytes kPosition{4};             // of a token's number or position
constexpr Bytes kSlot{8}, kAddress{8};

[[nodiscard]] double pieces(double values) { return std::ceil(values / kLayerPiece); }

// Of each token, that `workgroups` of them read.
[[nodiscard]] Stream lookups(const Op& op, Bytes entry, double workgroups) {
  const double tokens = static_cast<double>(op.m);
  return {.role = OperandRole::block_table,
          .unique = tokens * entry,
          .workgroups = workgroups,
          .stride = tokens,
          .rest = RestOfLine::neighbours,
          .run = entry};
}

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

// Widths of Q, and of K or V.
struct Widths {
  double query = 0, kv = 0;
};

[[nodiscard]] Widths widths_of(const Op& op) {
  if (!op.rotates)
    return {0, op.operands().front().unique / storage(op.activation_dtype, 2.0 * static_cast<double>(op.m))};
  const double query = op.operands()[1].unique / storage(op.activation_dtype, static_cast<double>(op.m));
  return {query, (static_cast<double>(op.n) - query) / 2};
}

void add_rotation(Streams& streams, const Op& op, const Widths& widths) {
  const double tokens = static_cast<double>(op.m), rotated = widths.query + widths.kv;
  const Dtype kept = activations_of(op);
  const double head = op.operands().front().contiguous_run / storage(op.activation_dtype, 1);
  const double workgroups = pieces(rotated / 2);
  streams.workgroups = tokens * workgroups;
  streams.add({.role = OperandRole::activation, .unique = storage(kept, tokens * rotated)});
  streams.add({.role = OperandRole::output, .unique = storage(kept, tokens * rotated)});
  streams.add({.role = OperandRole::activation,
               .unique = storage(Dtype::f32, tokens * head),
               .workgroups = workgroups,
               .stride = tokens,
               .asks = std::max(1.0, rotated / head / workgroups),
               .between = storage(kept, 2 * head) + storage(Dtype::f32, head)});
  streams.add(lookups(op, kPosition, workgroups));
}

// Groups of tokens that are complete: what of them is new, and what the residual has; in a unit after the other.
void add_groups(Streams& streams, const Op& op) {
  const KiviGroups groups = kivi_groups(op);
  if (groups.values == 0) return;
  streams.add(
      {.role = OperandRole::activation, .unique = storage(activations_of(op), groups.values - groups.from_residual)});
  for (const Operand& operand : op.operands())
    if (operand.role == OperandRole::kv_read || operand.role == OperandRole::kv_write)
      streams.add({.role = operand.role, .unique = operand.unique});
}

void add_caching(Streams& streams, const Op& op) {
  const Widths widths = widths_of(op);
  streams.workgroups = static_cast<double>(op.m);
  if (op.rotates) add_rotation(streams, op, widths);
  if (is_kivi(op.attention.kv_dtype)) return add_groups(streams, op);
  streams.add({.role = OperandRole::activation,
               .unique = storage(activations_of(op), 2 * static_cast<double>(op.m) * widths.kv)});
  streams.add(lookups(op, kSlot, 1));
  for (const Operand& operand : op.operands())
    if (operand.role == OperandRole::kv_write)
      streams.add({.role = operand.role, .unique = operand.unique, .run = operand.contiguous_run});
}

// The parts of the queries, then the keys are rotated; a third kernel reads latents and keys, and writes them.
void add_latent_caching(Streams& streams, const Op& op) {
  const double tokens = static_cast<double>(op.m);
  const Bytes value = storage(op.activation_dtype, tokens);
  const Operand &read = op.operands()[0], &turned = op.operands()[1];
  const double queries = turned.unique / value, width = read.unique / value - queries;
  const double rope = turned.contiguous_run / storage(op.activation_dtype, 1);
  const double workgroups = std::ceil(queries / 2 / kRotationThreads);
  const Dtype kept = activations_of(op);
  streams.workgroups = tokens * workgroups;
  streams.add({.role = OperandRole::activation, .unique = storage(kept, tokens * queries)});
  streams.add({.role = OperandRole::output, .unique = storage(kept, tokens * (queries + rope))});
  streams.add({.role = OperandRole::activation,
               .unique = storage(Dtype::f32, tokens * rope),
               .workgroups = workgroups + 1,
               .stride = tokens,
               .asks = std::max(1.0, queries / rope / workgroups),
               .between = storage(kept, 2 * rope) + storage(Dtype::f32, rope)});
  streams.add(lookups(op, kPosition, workgroups + 1));
  streams.add({.role = OperandRole::activation, .unique = storage(kept, tokens * (width + rope))});
  streams.add(lookups(op, kSlot, 1));
  for (const Operand& operand : op.operands())
    if (operand.role == OperandRole::kv_write)
      streams.add({.role = operand.role, .unique = operand.unique, .run = operand.contiguous_run});
}

// The kept keys are asked for twice: a value, and the one that it is turned with.
void add_sinks(Streams& streams, const Op& op) {
  const double tokens = static_cast<double>(op.m), kv_width = static_cast<double>(op.n) / 2;
  const Operand& kept = op.operands().front();
  const double head = kept.contiguous_run / storage(Dtype::f32, 1);
  streams.workgroups = tokens;
  streams.add({.role = OperandRole::activation, .unique = kept.unique / 2, .asks = 2, .between = kept.contiguous_run});
  streams.add({.role = OperandRole::activation, .unique = kept.unique / 2});
  streams.add({.role = OperandRole::activation,
               .unique = storage(Dtype::f32, tokens * head),
               .asks = kv_width / head,
               .between = 2 * kept.contiguous_run});
  streams.add(lookups(op, kPosition, 1));
  streams.add(lookups(op, kSlot, 1));
  streams.add(lookups(op, kAddress, 1));
  for (const Operand& operand : op.operands())
    if (operand.role == OperandRole::kv_write)
      streams.add({.role = operand.role,
                   .unique = operand.unique,
                   .rest = RestOfLine::neighbours,  // of the next sink
                   .run = operand.contiguous_run});
}

void add_cache_writes(Streams& streams, const Op& op) {
  if (op.kind == OpKind::shift_sink_keys) return add_sinks(streams, op);
  op.attention.is_latent ? add_latent_caching(streams, op) : add_caching(streams, op);
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
      return add_cache_writes(streams, op);
    case OpKind::matmul:
      return add_product(streams, op, kernel, units, parts);
    case OpKind::route_tokens:
      return add_routing(streams, op, kernel);
    case OpKind::attention_prefill:
    case OpKind::attention_decode:
    case OpKind::attention_scores:
    case OpKind::update_block_bounds:
    case OpKind::choose_critical_blocks:
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
