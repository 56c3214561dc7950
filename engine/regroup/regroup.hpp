// A model with fewer KV heads: which heads become one, and how.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/checkpoint/model_weights.hpp"
#include "engine/regroup/fitted_weights.hpp"
#include "engine/regroup/group_search.hpp"
#include "engine/regroup/head_groups.hpp"
#include "engine/regroup/head_maps.hpp"
#include "engine/regroup/head_statistics.hpp"

namespace dculab::engine {

enum class GroupingMethod : std::uint8_t {
  mean,        // neighbouring heads: Ainslie et al., arXiv:2305.13245
  similarity,  // the most similar heads: Opt-GQA; Chen et al., arXiv:2406.14963
  key_norm,    // neighbours, sizes by the norms of keys: key_norm_groups
  qcqa,        // of any sizes, and layers may differ: what loses least of all that leave as much in the KV cache
};

enum class HeadMerge : std::uint8_t {
  mean,      // all heads of a group count alike
  weighted,  // by HeadStatistics::importance. WGQA (arXiv:2407.10855) learns such weights; here they are measured
  fitted,    // fitted_factors: the weights that lose least, of any sign
  svd,       // svd_maps: the head from which the others can best be had back, Yu et al., arXiv:2406.07056
};

// What GroupingMethod::qcqa makes least.
enum class LostError : std::uint8_t {
  weights,      // mean_error of the weights of K and V: QCQA's weight-sharing error
  activations,  // mean_error of K and V on calibration text
  svd,          // svd_error: what HeadMerge::svd loses
};

// As options write them: "key-norm", "weighted", "activations", "distance", "kv".
[[nodiscard]] std::string_view name(GroupingMethod method);
[[nodiscard]] std::string_view name(HeadMerge merge);
[[nodiscard]] std::string_view name(LostError error);
[[nodiscard]] std::string_view name(HeadSimilarity similarity);
[[nodiscard]] std::string_view name(ComparedHeads compared);
inline constexpr std::array kGroupingMethods{GroupingMethod::mean, GroupingMethod::similarity, GroupingMethod::key_norm,
                                             GroupingMethod::qcqa};
inline constexpr std::array kHeadMerges{HeadMerge::mean, HeadMerge::weighted, HeadMerge::fitted, HeadMerge::svd};
inline constexpr std::array kLostErrors{LostError::weights, LostError::activations, LostError::svd};
inline constexpr std::array kHeadSimilarities{HeadSimilarity::cosine, HeadSimilarity::norm, HeadSimilarity::distance,
                                              HeadSimilarity::svd};
inline constexpr std::array kComparedHeads{ComparedHeads::key_value, ComparedHeads::query, ComparedHeads::output};

struct RegroupOptions {
  int num_key_value_heads = 1;  // qcqa: the mean of the layers, which no choice exceeds
  GroupingMethod method = GroupingMethod::mean;
  HeadSimilarity similarity = HeadSimilarity::cosine;
  HeadMerge merge = HeadMerge::mean;
  ComparedHeads compared = ComparedHeads::key_value;
  LostError error = LostError::weights;
  GroupSearch search{};

  [[nodiscard]] bool needs_calibration() const {
    const bool searches_weights = method == GroupingMethod::qcqa && error == LostError::weights;
    return !(method == GroupingMethod::mean || searches_weights) || merge != HeadMerge::mean;
  }
  [[nodiscard]] SecondMoments second_moments() const {
    const bool needed = similarity == HeadSimilarity::svd || merge == HeadMerge::svd || merge == HeadMerge::fitted ||
                        error == LostError::svd;
    return needed ? SecondMoments::collect : SecondMoments::omit;
  }
};

struct RegroupedLayer {
  HeadGroups groups;
  std::vector<double> weights;  // [num_key_value_heads before]: shares within the group; empty: equal
  std::vector<GroupMaps> maps;  // [groups] of HeadMerge::svd; else, and for groups of one head: empty
  GroupSimilarity similarity;   // of these groups; empty without statistics
  GroupSimilarity neighbours;   // of neighbouring heads, to compare with; empty where they do not divide
  HeadFactors factors{};        // of HeadMerge::fitted
};

struct Regrouping {
  ModelWeights weights;
  std::vector<RegroupedLayer> layers;
  std::vector<LayersPoint> front{};  // of qcqa: the best choices for all layers, of which one was taken
};

// Throws InputError for a number of KV heads that a model of this shape cannot have left.
void require_possible(const ModelShape& shape, const RegroupOptions& options);

// `statistics` has an entry for each layer, or none when the options need no calibration. Throws InputError when the
// model cannot be regrouped so.
[[nodiscard]] Regrouping regroup(const ModelWeights& weights, const RegroupOptions& options,
                                 std::span<const HeadStatistics> statistics);

}  // namespace dculab::engine
