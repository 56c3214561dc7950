#include "lower/dculab_gpu/kv_streams.hpp"

#include <algorithm>

#include "lower/dculab_gpu/product_streams.hpp"
#include "lower/kv/critical_blocks_geometry.hpp"
#include "lower/kv/kv_lowering.hpp"

namespace dculab::lower::dculab_gpu {
namespace {

constexpr double kRotationThreads = 256;  // pairs that a workgroup of part_rotary_embedding_kernel turns
constexpr Bytes kSlot{8}, kAddress{8};
constexpr Bytes kScale{4};  // of a token and head of an int8 cache

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

// New tokens that are written to a block.
[[nodiscard]] double tokens_of_block(const Op& op) {
  return static_cast<double>(op.m) / std::max(1.0, op.attention.kv_blocks);
}

// Codes, and for each token and head the scale that lies with those of its block's other tokens. The next head's
// follow.
void add_int8(Streams& streams, const Op& op, const Operand& written, RestOfLine rest) {
  const double rows = written.unique / (written.contiguous_run + kScale);
  streams.add(
      {.role = written.role, .unique = rows * written.contiguous_run, .rest = rest, .run = written.contiguous_run});
  streams.add({.role = written.role,
               .unique = rows * kScale,
               .rest = RestOfLine::neighbours,
               .run = kScale * std::max(1.0, tokens_of_block(op)),
               .pitch = kScale * op.attention.block_size});
}

// Who writes the rest of a head's last line.
void add_written(Streams& streams, const Op& op, const Operand& written, RestOfLine rest = RestOfLine::nobody) {
  if (op.attention.kv_dtype == Dtype::int8) return add_int8(streams, op, written, rest);
  streams.add({.role = written.role, .unique = written.unique, .rest = rest, .run = written.contiguous_run});
}

void add_caching(Streams& streams, const Op& op) {
  const Widths widths = widths_of(op);
  streams.workgroups = static_cast<double>(op.m);
  if (op.rotates) add_rotation(streams, op, widths);
  if (const auto add_writes = kv_format_lowering(op.attention.kv_dtype).add_gpu_writes)
    return add_writes(streams, op, activations_of(op));
  streams.add({.role = OperandRole::activation,
               .unique = storage(activations_of(op), 2 * static_cast<double>(op.m) * widths.kv)});
  streams.add(lookups(op, kSlot, 1));
  const RestOfLine rest = tokens_of_block(op) > 1 ? RestOfLine::neighbours : RestOfLine::nobody;  // the next token
  for (const Operand& operand : op.operands())
    if (operand.role == OperandRole::kv_write) add_written(streams, op, operand, rest);
  if (const Operand* kept = kept_beside_cache(op)) {  // another kernel's, which reads them first
    streams.add({.role = OperandRole::activation,
                 .unique = storage(activations_of(op), kept->unique / storage(Dtype::f32, 1))});
    streams.add({.role = kept->role, .unique = kept->unique});
  }
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
    if (operand.role == OperandRole::kv_write) add_written(streams, op, operand);
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
    if (operand.role == OperandRole::kv_write) add_written(streams, op, operand, RestOfLine::neighbours);  // next sink
}

// Keys of the new tokens, where they were cached; bounds that widen, and all that are written. A wave has a KV head,
// and looks up where its tokens lie.
void add_bounds_update(Streams& streams, const Op& op, const KernelId& kernel) {
  const AttentionWork& work = op.attention;
  const double waves = kBoundsThreads / kernel.wave_size, groups = std::ceil(work.num_kv_heads / waves);
  const double in_row = std::max(1.0, static_cast<double>(op.m) / work.kv_blocks);  // tokens of a block
  streams.workgroups = work.kv_blocks * groups;
  for (const Operand& operand : op.operands()) {
    Stream stream{.role = operand.role, .unique = operand.unique, .run = operand.contiguous_run};
    if (operand.role == OperandRole::activation) stream.run = in_row * operand.contiguous_run;
    if (operand.role == OperandRole::kv_read || operand.role == OperandRole::kv_write)
      stream.rest = RestOfLine::neighbours;  // of the next KV head
    if (operand.role == OperandRole::block_table) {
      stream.workgroups = groups, stream.stride = work.kv_blocks;
      stream.asks = std::min<double>(waves, work.num_kv_heads), stream.between = kPosition;
      if (in_row > 1) stream.rest = RestOfLine::neighbours;  // of the sequence's next block
    }
    streams.add(stream);
  }
  Stream places = lookups(op, kPosition, groups);  // where the new tokens of a sequence begin and end, its context
  places.unique = 3 * work.kv_blocks * kPosition, places.stride = work.kv_blocks;
  streams.add(places);
}

// A part of the blocks, of a KV head, has a workgroup that reads the queries, and each of its waves does. The second
// kernel goes over the bounds of products five times, looks up the blocks that it has chosen, and copies the queries.
void add_block_choice(Streams& streams, const Op& op, const KernelId& kernel) {
  const AttentionWork& work = op.attention;
  const double sequences = std::max(1, work.num_sequences), heads = work.num_kv_heads;
  const double parts = std::ceil(work.kv_blocks / sequences / kBoundedBlocks);
  const Bytes queries = storage(activations_of(op), static_cast<double>(op.m) * static_cast<double>(op.n));
  const Bytes products = storage(Dtype::f32, work.kv_blocks * heads);
  const Operand &bounds = op.operands()[1], &table = op.operands()[2], &written = op.operands()[3];
  const Bytes lists =
      written.unique - storage(op.activation_dtype, queries / storage(activations_of(op), 1)) - 2.0 * products;
  streams.workgroups = parts * sequences * heads;
  streams.add({.role = bounds.role,
               .unique = bounds.unique,
               .rest = RestOfLine::neighbours,  // of the next KV head
               .run = bounds.contiguous_run});
  streams.add({.role = table.role, .unique = table.unique, .workgroups = heads, .stride = parts * sequences});
  streams.add({.role = OperandRole::activation,
               .unique = queries,
               .workgroups = parts,
               .asks = static_cast<double>(kBoundsThreads) / kernel.wave_size,
               .between = queries / (sequences * heads)});
  streams.add({.role = OperandRole::activation,
               .unique = products,
               .asks = kChoicePasses,
               .between = products / (sequences * heads)});
  streams.add({.role = table.role, .unique = table.unique, .workgroups = heads});
  streams.add({.role = OperandRole::activation, .unique = queries});
  streams.add({.role = OperandRole::output, .unique = products + queries + lists});
}

}  // namespace

Stream lookups(const Op& op, Bytes entry, double workgroups) {
  const double tokens = static_cast<double>(op.m);
  return {.role = OperandRole::block_table,
          .unique = tokens * entry,
          .workgroups = workgroups,
          .stride = tokens,
          .rest = RestOfLine::neighbours,
          .run = entry};
}

void add_kv_op(Streams& streams, const Op& op, const KernelId& kernel) {
  if (op.kind == OpKind::update_block_bounds) return add_bounds_update(streams, op, kernel);
  if (op.kind == OpKind::choose_critical_blocks) return add_block_choice(streams, op, kernel);
  if (op.kind == OpKind::shift_sink_keys) return add_sinks(streams, op);
  op.attention.is_latent ? add_latent_caching(streams, op) : add_caching(streams, op);
}

}  // namespace dculab::lower::dculab_gpu
