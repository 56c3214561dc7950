// How one kernel does an op on a device: all that its price depends on besides the op's own bytes and the machine's
// figures.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "core/activation_mode.hpp"
#include "core/dtype.hpp"
#include "core/op.hpp"
#include "core/units.hpp"
#include "lower/occupancy.hpp"

namespace dculab::lower {

// What the kernel asks of one operand.
struct Access {
  OperandRole role = OperandRole::activation;
  Bytes unique;               // distinct bytes
  double requests = 1;        // how many workgroups ask for each byte (output: always 1)
  Bytes contiguous_run;       // bytes in one piece before the address jumps
  Bytes found_at_once{};      // KV: bytes of K, or of V, that a wave can ask for before it looks up where more lies
  bool is_scattered = false;  // pieces lie anywhere: KV blocks, rows of an embedding
  double runs_in_step = 1;    // pieces that follow one another and are walked side by side: the KV heads of a block
};

struct Grid {
  double workgroups = 1;  // on a CPU: tasks
  // A kernel that hands out rows starts as many workgroups as run at a time, up to this many; others `workgroups`.
  double most_workgroups = 1;
  // Attention: KV tokens that all workgroups walk, and the one with the most of them; 0 elsewhere.
  double walked_tokens = 0;
  double longest_walk_tokens = 0;
  bool is_dealt = false;  // to units in turn, whatever there is to walk, so that long walks meet on one
};

// Of a product: how many tiles y is cut into. 0: no product.
struct Tiles {
  double rows = 0;
  double columns = 0;
};

// Which of what the stack reaches applies.
enum class Pipe : std::uint8_t { elementwise, matmul, attention };

// What the kernel computes, by the pipe it runs on. Instructions are lanes of the vector units.
struct Arithmetic {
  Pipe pipe = Pipe::elementwise;
  FlopCount multiply;                // including what is padded
  Dtype multiplied_in = Dtype::f32;  // that the kernel asks for; the machine may have to take a wider one
  double rows = 1;                   // that share one pass over the stored values
  double tile_rows = 16;             // to which matrix cores pad them
  double stored_values = 0;          // loaded, and converted where they are not stored in what is multiplied
  Dtype stored = Dtype::f32;
  double shaping_per_value = 0;         // instructions that bring a stored value to where it is multiplied
  FlopCount softmax;                    // instructions
  FlopCount issued;                     // in place of softmax: all that its code issues, at the full rate
  FlopCount packed;                     // softmax, at the rate of pairs of 16 bits
  double integer_instructions = 0;      // in place of the conversions, where the machine multiplies bytes as asked
  bool has_matrix_instructions = true;  // false: vector units multiply, whatever else the machine has
  double waves_to_fill = 1;  // of a SIMD, that issue together what it can start: each waits for its own results
};

// A product whose kernel a probe may have measured on its own.
struct ProductShape {
  Dtype weights = Dtype::f32;
  ActivationMode activations = ActivationMode::exact;
  double rows = 1;
  std::int64_t in_features = 0;
};

// How a kernel that fetches the next tile while it multiplies this one hides memory behind arithmetic.
enum class Overlap : std::uint8_t {
  partial,       // each level as much as the stack's overlap says
  caches,        // caches wholly
  all,           // DRAM too
  dram_in_turn,  // caches partially, DRAM not at all
  neighbours,    // a workgroup waits before it works: only others on its unit hide that, the more the better
  waves,         // a wave does: others on its SIMD hide that
};

// Values for which there are no registers: stored to memory and loaded again.
struct Spills {
  Bytes moved;    // stores and loads
  Bytes between;  // what a workgroup asks for from one to the next of the same value
};

// Who asks for the rest of a line of which a kernel asks for a piece at a time.
enum class RestOfLine : std::uint8_t { nobody, same_workgroup, neighbours };

// What the workgroups of a kernel ask for of one tensor, where the kernel is known so well. Workgroups are numbered in
// the order in which they start.
struct Stream {
  OperandRole role = OperandRole::activation;
  Bytes unique;           // distinct bytes
  double workgroups = 1;  // that ask for each of them,
  double stride = 1;      // and how far apart their numbers are
  double asks = 1;        // by each of them,
  Bytes between{};        // and what such a workgroup asks for from one to the next; 0: its whole share
  // Lines are asked for in pieces: runs of `run` bytes that lie anywhere, or `visits` of the same workgroup to each
  // line of `visits` * `run` bytes (run = 0: to each line), which asks for `step` bytes meanwhile, of rows `pitch`
  // apart (0: of one piece). Runs of neighbours may be `pitch` apart too (0: they follow one another).
  RestOfLine rest = RestOfLine::nobody;
  Bytes run{};
  double visits = 1;
  Bytes step{};
  Bytes pitch{};
};

// Of a kernel and those that follow it.
struct Streams {
  std::array<Stream, 10> storage{};
  int count = 0;          // 0: the kernel asks for the op's operands, and nothing else is known
  double workgroups = 1;  // of the first kernel, all parts of a split product included

  [[nodiscard]] std::span<const Stream> all() const { return {storage.data(), static_cast<std::size_t>(count)}; }
  [[nodiscard]] std::span<Stream> all() { return {storage.data(), static_cast<std::size_t>(count)}; }
  void add(const Stream& stream) { storage[static_cast<std::size_t>(count++)] = stream; }
};

// One way of doing a collective, as each device sees it: it starts, sends messages that wait for one another, and moves
// bytes over its links.
struct Exchange {
  int kernels = 0;        // launched one after the other; 0: a library's, which start as the machine says
  Seconds default_start;  // of a library's kernels on a machine that does not say
  Seconds later_start;
  double hops = 0;
  Seconds later_hop;
  Bytes sent;
  double link_share = 1;  // of what the links sustain
  Bytes copied;           // within the device's memory, before and after
};

// A collective, and the ways its kernels know, of which the quickest is taken.
struct Exchanges {
  int devices = 1;  // 1: nothing to exchange
  int count = 0;
  std::array<Exchange, 4> storage{};

  [[nodiscard]] std::span<const Exchange> ways() const { return {storage.data(), static_cast<std::size_t>(count)}; }
  void add(const Exchange& way) { storage[static_cast<std::size_t>(count++)] = way; }
};

// How a kernel uses the links within a node and between nodes.
enum class LinkUse : std::uint8_t { together, in_turn };

// A dispatch or combine of tokens in expert parallelism, as the device that moves the most sees it.
struct TokenTransfer {
  int devices = 1;    // 1: nothing to exchange
  int kernels = 1;    // launched one after the other
  double passes = 1;  // messages that wait for one another, each over the longest way
  Bytes within;       // over the links of a server
  Bytes between{};    // over the network
  LinkUse links = LinkUse::together;
  double units = 0;  // compute units that it takes from other kernels while it runs
};

struct Launch {
  std::array<Access, kMaxOperands> access_storage{};  // in the order of the op's operands
  int num_accesses = 0;
  KernelResources resources{};     // GPU
  bool knows_resources = false;    // of its own tiles, so that no other kernel's stand for them
  double workgroups_per_unit = 1;  // that fit at a time
  double waves_per_workgroup = 1;
  Grid grid;
  Tiles tiles;
  Arithmetic arithmetic;
  std::optional<ProductShape> product{};
  Overlap overlap = Overlap::partial;
  int kernels = 1;             // launched one after the other
  double waits_for_table = 0;  // loads of block-table entries that data waits for, over all workgroups,
  double entries_at_once = 0;  // and entries that such a load asks for
  double chained_loads = 0;    // from the last cache that wait for one another, on the way to the end
  double chained_steps = 0;    // the same in the scratchpad of a unit
  double loads_before = 0;     // of a workgroup, that wait for one another before its first tile
  // A product by tiles may be split along k into this many parts, which run at once; a second kernel adds their sums of
  // `sums` values each.
  double most_parts = 1;
  double parts = 0;  // that it is split into; 0: what is cheapest
  double sums = 0;
  bool adds_in_place = false;  // the parts add to y in memory, without that kernel
  Spills spills{};             // of all workgroups
  // Slabs of k that each workgroup of a product by tiles fetches, were it not split, and what it asks for with each.
  double slabs = 0;        // 0: as many loads are under way as the waves may have
  double slabs_ahead = 1;  // that are under way
  Bytes slab{};
  double slab_steps = 1;        // reads of a slab from the scratchpad that the instructions on each wait for
  bool draws_for_idle = false;  // what a busy unit fetches is not held to its share of DRAM
  bool waits_for_loads = true;  // bytes in flight are those of the waves; false: hardware prefetches
  bool comes_back = false;      // a unit gets the same work in every step, so that its own caches may still hold it
  bool may_run_inline = false;  // by the calling thread alone, without waking the others
  bool draws_alike = false;     // from what all units share: each of several workgroups on a unit as one alone there
  Exchanges exchanges{};
  TokenTransfer transfer{};
  Streams streams{};

  [[nodiscard]] std::span<const Access> accesses() const {
    return {access_storage.data(), static_cast<std::size_t>(num_accesses)};
  }
  [[nodiscard]] std::span<Access> accesses() { return {access_storage.data(), static_cast<std::size_t>(num_accesses)}; }

  // Of all operands: what must cross the memory bus at least once if nothing is cached.
  [[nodiscard]] Bytes unique_bytes() const {
    Bytes total;
    for (const Access& access : accesses()) total += access.unique;
    return total;
  }
};

}  // namespace dculab::lower
