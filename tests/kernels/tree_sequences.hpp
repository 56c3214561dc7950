// Random trees of guesses at the end of sequences, for attention with masks.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/ops.hpp"
#include "tests/kernels/paged_sequences.hpp"

namespace dculab::kernels {

// Which place of a tree sees which: bit i of row i, and those of its parent's row.
inline std::vector<std::uint64_t> random_tree(TensorSource& source, int places) {
  std::vector<std::uint64_t> rows;
  for (int place = 0; place < places; ++place) {
    const std::uint64_t parent = place == 0 ? 0 : rows[static_cast<std::size_t>(source.integer(0, place - 1))];
    rows.push_back(parent | std::uint64_t{1} << place);
  }
  return rows;
}

// The trees of a call: of each sequence 0 or the size of its tree, whose last places are the new tokens.
struct CalledTrees {
  std::vector<std::uint64_t> masks;
  std::vector<std::int32_t> sizes;

  CalledTrees(const std::vector<NewTokens>& calls, const std::vector<int>& sizes_of_trees, unsigned seed)
      : sizes(sizes_of_trees.begin(), sizes_of_trees.end()) {
    TensorSource source(seed);
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const std::vector<std::uint64_t> rows = random_tree(source, sizes_of_trees[i]);
      for (int token = calls[i].tokens; token > 0; --token)
        masks.push_back(rows.empty() ? ~std::uint64_t{0} : rows[rows.size() - static_cast<std::size_t>(token)]);
    }
  }

  [[nodiscard]] TreeMasks view() const { return {masks.data(), sizes.data()}; }
};

}  // namespace dculab::kernels
