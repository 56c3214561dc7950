// Groups of unequal sizes, searched over what they lose and what they leave in the KV cache.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/regroup/group_error.hpp"
#include "engine/regroup/head_groups.hpp"

namespace dculab::engine {

struct GroupSearch {
  std::uint64_t seed = 1;
  int population = 64;
  int generations = 200;
};

struct GroupingPoint {
  HeadGroups groups;
  double error = 0;  // the sum over its groups
};

// Of a layer, ascending in the number of groups, from one to all heads apart, each with a smaller error than those with
// fewer groups; none that was seen beats another of them in both. Found by NSGA-II (Deb et al. 2002), as in QCQA
// (arXiv:2406.10247, its groups of arbitrary cardinality): tournaments by rank and crowding, crossover and mutation of
// the group of each head. It begins from neighbours, and from the groups that single merges of least error reach one
// after the other. The same every time for the same seed.
[[nodiscard]] std::vector<GroupingPoint> search_groups(int num_heads, const GroupError& error,
                                                       const GroupSearch& search);

// A choice for all layers.
struct LayersPoint {
  int kv_heads = 0;                   // of all layers together: what a token leaves in the KV cache
  double error = 0;                   // of all layers together
  std::vector<std::size_t> choice{};  // [layers]: the point of the layer's front
};

// The choices that no other beats, ascending in KV heads. Errors of layers are added, so this is exact (dynamic
// programming over layers); QCQA searches for it, because it may also run the model.
[[nodiscard]] std::vector<LayersPoint> combine_fronts(std::span<const std::vector<GroupingPoint>> layers);

}  // namespace dculab::engine
