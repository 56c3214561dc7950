// A model with fewer KV heads: which heads become one, and how.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/checkpoint/model_weights.hpp"
#include "engine/regroup/head_groups.hpp"
#include "engine/regroup/head_maps.hpp"
#include "engine/regroup/head_statistics.hpp"

namespace dculab::engine {

enum class GroupingMethod : std::uint8_t {
  mean,        // neighbouring heads: Ainslie et al., arXiv:2305.13245
  similarity,  // the most similar heads: Opt-GQA; Chen et al., arXiv:2406.14963
};

enum class HeadMerge : std::uint8_t {
  mean,      // all heads of a group count alike
  weighted,  // by HeadStatistics::importance. WGQA (arXiv:2407.10855) learns such weights; here they are measured
  svd,       // svd_maps: the head from which the others can best be had back, Yu et al., arXiv:2406.07056
};

struct RegroupOptions {
  int num_key_value_heads = 1;
  GroupingMethod method = GroupingMethod::mean;
  HeadSimilarity similarity = HeadSimilarity::cosine;
  HeadMerge merge = HeadMerge::mean;

  [[nodiscard]] bool needs_calibration() const {
    return method == GroupingMethod::similarity || merge != HeadMerge::mean;
  }
  [[nodiscard]] SecondMoments second_moments() const {
    const bool needed = similarity == HeadSimilarity::svd || merge == HeadMerge::svd;
    return needed ? SecondMoments::collect : SecondMoments::omit;
  }
};

struct RegroupedLayer {
  HeadGroups groups;
  std::vector<double> weights;  // [num_key_value_heads before]: shares within the group; empty: equal
  std::vector<GroupMaps> maps;  // [groups] of HeadMerge::svd; else, and for groups of one head: empty
  GroupSimilarity similarity;   // of these groups; empty without statistics
  GroupSimilarity neighbours;   // of neighbouring heads, to compare with
};

struct Regrouping {
  ModelWeights weights;
  std::vector<RegroupedLayer> layers;
};

// `statistics` has an entry for each layer, or none when the options need no calibration. Throws InputError when the
// model cannot be regrouped so.
[[nodiscard]] Regrouping regroup(const ModelWeights& weights, const RegroupOptions& options,
                                 std::span<const HeadStatistics> statistics);

}  // namespace dculab::engine
