// How much the workgroups of a paged attention kernel walk: summed over the sequences of a step.
#pragma once

#include <optional>

#include "core/batch.hpp"
#include "core/op.hpp"
#include "core/step_plan.hpp"
#include "lower/occupancy.hpp"

namespace dculab::lower {

[[nodiscard]] constexpr int ceil_divide(int a, int b) { return (a + b - 1) / b; }

// How a workgroup finds its tokens in the block table.
struct TableLookUp {
  int tokens = 0;    // whose entries are asked for at once, whatever the block size: a tile of K; 0: block by block
  double waits = 1;  // for them, one after the other: for K's, then V's; 0: they are there before they are needed
};

// Lane instructions per token, of a kernel that has no matrix instructions; 0: others.
struct VectorWork {
  double full = 0;  // at the rate of F32
  double half = 0;  // at that of pairs of 16 bits: conversions are among them
};

// Lane instructions of a workgroup beside its matrix instructions, where its code was counted; 0: softmax's, 10 a
// score.
struct IssuedWork {
  double once = 0;           // before its first tile and after its last
  double each_tile = 0;      // of look_up.tokens
  double waits = 0;          // of each workgroup's lanes for one another, in loads from the last cache
  bool multiplies = false;   // its multiply-adds are among them
  double waves_to_fill = 1;  // of a SIMD (Arithmetic::waves_to_fill)
};

// What one workgroup does.
struct AttentionTile {
  int query_tokens = 1;      // new tokens of a sequence that share one pass over K and V
  int query_heads = 1;       // of one KV head
  int partition_tokens = 0;  // decode: of the context, at most; 0 = all of it
  // Decode: workgroups of a head group that share all contexts evenly, a sequence's rest and the next one's beginning
  // in one of them; 0: each has one sequence's.
  double persistent = 0;
  int padded_rows = 0;  // of queries, that a matrix instruction works on at least; 0: as the device's usual kernels
  TableLookUp look_up{};
  VectorWork vector_work{};
  IssuedWork issued{};
  double loads_before = 0;                     // its first tile, that wait for one another
  std::optional<KernelResources> resources{};  // where the kernel's tiles say them
  bool gathers_paths = false;  // of a tree of drafts: what all its tokens see is walked once, the rest token by token
  bool works_in_turn = false;  // a workgroup waits for its tile before it multiplies it,
  bool wave_by_wave = false;   // each of its waves alone
  bool is_dealt = false;       // Grid::is_dealt
  bool has_matrix_instructions = true;
};

struct AttentionWalk {
  double workgroups = 0;           // over sequences, head groups and partitions (or query tiles)
  double tokens = 0;               // KV tokens walked, per head group and KV head
  double longest_tokens = 0;       // by the workgroup with the most work
  double table_entries = 0;        // followed, over all workgroups
  double waits_for_table = 0;      // loads of entries that wait for one another within a workgroup, over all of them
  double partitions_combined = 0;  // partial results, of all query tokens, merged by a second pass; 0 = single pass
  double longest_context = 0;      // of a sequence
  double tiles = 0;                // of look_up.tokens that workgroups go through, the last of each not full
};

// Workgroups that walk the same KV tokens of one KV head, for different query heads.
[[nodiscard]] int head_groups(const AttentionWork& work, const AttentionTile& tile);

// Of `op`, an attention op of `step`.
[[nodiscard]] AttentionWalk walk_of(const Op& op, const StepPlan& step, const AttentionTile& tile);

// Decodes of a step.
struct Decodes {
  std::int64_t sequences = 0;
  int longest = 0;  // context
};
[[nodiscard]] Decodes decodes_of(const Batch& batch);

}  // namespace dculab::lower
