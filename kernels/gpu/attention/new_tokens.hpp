// What each of several new tokens of a sequence that is decoded sees: a chain, or a tree of guesses.
#pragma once

#include "kernels/gpu/args.hpp"
#include "kernels/gpu/attention/scores.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

// The new tokens of one sequence.
struct NewTokens {
  int first, count;  // tokens of the launch
  int computed;      // places before them
  int tree_begin;    // place; -1 without a tree

  // Of all of them, at least.
  [[nodiscard]] __device__ __forceinline__ int first_position() const { return tree_begin < 0 ? computed : tree_begin; }
};

__device__ __forceinline__ NewTokens new_tokens_of(const DecodeQueries& queries, int seq, int context) {
  const int begin = load(queries.start_loc), first = load(queries.start_loc + seq);
  NewTokens tokens;
  tokens.first = first - begin;
  tokens.count = load(queries.start_loc + seq + 1) - first;
  tokens.computed = context - tokens.count;
  const int tree_size = queries.tree_sizes == nullptr ? 0 : load(queries.tree_sizes + seq);
  tokens.tree_begin = tree_size == 0 ? -1 : context - tree_size;
  return tokens;
}

struct QuerySight {
  int limit;           // places before it are seen, each at the position of that number
  int position;        // of the token
  std::uint64_t mask;  // bit i: place limit + i is seen, at the next position that is left
};

// Of new token `index` of a sequence.
__device__ __forceinline__ QuerySight sight_of(const DecodeQueries& queries, const NewTokens& tokens, int index) {
  const int own = tokens.computed + index;
  if (tokens.tree_begin < 0) return {own + 1, own, 0};
  const std::uint64_t mask = load(queries.tree_masks + tokens.first + index);
  return {tokens.tree_begin, tokens.tree_begin + count_bits(mask) - 1, mask};
}

// The distance from the token back to the key at a place, at most 0; 1 where it is not seen. Without branches: lanes
// meet soon after.
__device__ __forceinline__ int distance_to(const QuerySight& sight, int place) {
  const int behind = place - sight.limit;
  const std::uint64_t below = (std::uint64_t{1} << (behind & 63)) - 1;
  const bool is_seen = (behind < 0) | ((behind < 64) & ((sight.mask >> (behind & 63) & 1U) != 0));
  const int position = choose(behind < 0, place, sight.limit + count_bits(sight.mask & below));
  return choose(is_seen, position - sight.position, 1);
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
