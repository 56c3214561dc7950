// Fewer KV heads: which are grouped, and what is left of the model.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "core/error.hpp"
#include "engine/checkpoint/model_loader.hpp"
#include "engine/regroup/head_calibration.hpp"
#include "engine/regroup/head_merge.hpp"
#include "engine/regroup/mean_pool.hpp"
#include "engine/regroup/regroup.hpp"
#include "tests/engine/support/regroup_model.hpp"
#include "tests/support/catch.hpp"

namespace dculab::engine {
namespace {

// Gives heads `from` and `to` of every layer the same K and V.
void copy_head(ModelWeights& weights, std::size_t from, std::size_t to) {
  const auto bytes =
      static_cast<std::size_t>(weights.shape.kinds[0].gqa().heads.head_dim * weights.shape.hidden_size) * sizeof(float);
  for (const WeightSlots& layer : weights.layers)
    for (const kernels::WeightView* view :
         {&layer[WeightSlot::qkv_proj].weights[kK], &layer[WeightSlot::qkv_proj].weights[kV]})
      std::memcpy(writable(*view) + to * bytes, writable(*view) + from * bytes, bytes);
}

SimilarityMatrix random_similarity(int heads, std::uint64_t seed) {
  SimilarityMatrix similarity(heads);
  for (int a = 0; a < heads; ++a)
    for (int b = 0; b < a; ++b) {
      seed = seed * 6364136223846793005U + 1442695040888963407U;
      similarity.set(a, b, static_cast<double>(seed >> 40U) / static_cast<double>(1U << 24U));
    }
  return similarity;
}

// Heads h with equal place[h] / group_size are alike.
SimilarityMatrix planted_similarity(const std::vector<int>& place, int group_size) {
  const int heads = static_cast<int>(place.size());
  SimilarityMatrix similarity = random_similarity(heads, 3);
  for (int a = 0; a < heads; ++a)
    for (int b = 0; b < a; ++b)
      if (place[static_cast<std::size_t>(a)] / group_size == place[static_cast<std::size_t>(b)] / group_size)
        similarity.set(a, b, similarity(a, b) + 1.5);
  return similarity;
}

// A shuffle of 0 .. n - 1 that leaves few neighbours together: multiples of a number that shares no factor with n.
std::vector<int> scattered(int n) {
  std::vector<int> place(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) place[static_cast<std::size_t>(i)] = i * 11 % n;
  return place;
}

double inside(const SimilarityMatrix& similarity, const HeadGroups& groups) {
  return group_similarity(similarity, groups).inside.value();
}

// Every partition of the heads that are left into pairs, tried one by one.
double best_pairs(const SimilarityMatrix& similarity, std::vector<int> left) {
  if (left.empty()) return 0;
  double best = -std::numeric_limits<double>::infinity();
  for (std::size_t i = 1; i < left.size(); ++i) {
    std::vector<int> rest = left;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
    rest.erase(rest.begin());
    best = std::max(best, similarity(left[0], left[i]) + best_pairs(similarity, rest));
  }
  return best;
}

std::vector<LayerMerge> in_all_layers(const HeadGroups& groups) { return {2, LayerMerge{groups, {}, {}}}; }

}  // namespace

TEST_CASE("similar heads are found whatever their order, by the exact method and by the search") {
  for (const int heads : {8, 16, 32, 40})
    for (const int group_size : {2, 4, 8}) {
      const std::vector<int> place = scattered(heads);
      const HeadGroups groups = similar_groups(planted_similarity(place, group_size), heads / group_size);
      INFO(heads << " heads in groups of " << group_size);
      for (const std::vector<int>& group : groups) {
        REQUIRE(static_cast<int>(group.size()) == group_size);
        REQUIRE(std::ranges::is_sorted(group));
        for (const int head : group)
          REQUIRE(place[static_cast<std::size_t>(head)] / group_size ==
                  place[static_cast<std::size_t>(group[0])] / group_size);
      }
    }
}

TEST_CASE("the groups of few heads are the best of all partitions") {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    const SimilarityMatrix similarity = random_similarity(8, seed);
    std::vector<int> all(8);
    std::iota(all.begin(), all.end(), 0);
    REQUIRE_THAT(inside(similarity, similar_groups(similarity, 4)), WithinAbs(best_pairs(similarity, all) / 4, 1e-12));
  }
}

TEST_CASE("the groups of many heads are never worse than neighbours, and always the same") {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    const SimilarityMatrix similarity = random_similarity(24, seed);
    const HeadGroups groups = similar_groups(similarity, 6);
    REQUIRE(inside(similarity, groups) >= inside(similarity, neighbour_groups(24, 6)));
    REQUIRE(groups == similar_groups(similarity, 6));
  }
}

TEST_CASE("means inside and between groups, by hand") {
  SimilarityMatrix similarity(4);
  similarity.set(0, 1, 0.9);
  similarity.set(2, 3, 0.7);
  for (const auto& [a, b] : {std::pair{0, 2}, {0, 3}, {1, 2}, {1, 3}}) similarity.set(a, b, 0.1);
  const GroupSimilarity two = group_similarity(similarity, neighbour_groups(4, 2));
  REQUIRE_THAT(two.inside.value(), WithinAbs(0.8, 1e-12));
  REQUIRE_THAT(two.between.value(), WithinAbs(0.1, 1e-12));
  REQUIRE(!group_similarity(similarity, neighbour_groups(4, 4)).inside);
  REQUIRE(!group_similarity(similarity, neighbour_groups(4, 1)).between);
  REQUIRE(similar_groups(SimilarityMatrix(4), 2) == neighbour_groups(4, 2));  // all alike: order is kept
}

TEST_CASE("statistics of two heads, by hand") {
  ModelShape shape;
  shape.hidden_size = shape.kinds[0].gqa().heads.num_attention_heads = shape.kinds[0].gqa().heads.num_key_value_heads =
      shape.kinds[0].gqa().heads.head_dim = 2;
  HeadStatistics statistics(shape);
  //                             Q           K heads     V heads
  statistics.add_qkv(std::vector{0.F, 0.F, 0.F, 0.F, 3.F, 4.F, 4.F, 3.F, 1.F, 0.F, 0.F, 2.F});
  statistics.add_qkv(std::vector{0.F, 0.F, 0.F, 0.F, 1.F, 0.F, -2.F, 0.F, 0.F, 0.F, 0.F, 0.F});
  // cosine: K (24/25 - 1) / 2, V (0 + none) / 2; norm: K (1 + 1/2) / 2, V (1/2 + 1) / 2.
  REQUIRE_THAT(statistics.similarity(HeadSimilarity::cosine)(0, 1), WithinAbs(-0.01, 1e-12));
  REQUIRE_THAT(statistics.similarity(HeadSimilarity::norm)(1, 0), WithinAbs(0.75, 1e-12));
  // distance: K 1 - (2 + 9) / (26 + 29), V 1 - 5 / 5.
  REQUIRE_THAT(statistics.similarity(HeadSimilarity::distance)(0, 1), WithinAbs(0.4, 1e-12));

  statistics.add_attention(std::vector{1.F, 2.F, 0.F, 0.F});
  statistics.add_attention(std::vector{0.F, 1.F, 5.F, 0.F});
  const std::vector<float> o_proj{1, 0, 0, 1,
                                  0, 2, 0, 1};  // [2, 4]: diag(1, 2) for head 0; head 1 shows its second value
  const std::vector<double> importance = statistics.importance({o_proj.data(), Dtype::f32, 2});
  REQUIRE_THAT(importance[0], WithinRel(std::sqrt((1 + 16 + 4) / 2.0), 1e-12));
  REQUIRE(importance[1] == 0);
}

TEST_CASE("a model whose every head is a group of its own is the same model") {
  const ModelWeights weights = load_weights(mha_model().folder());
  REQUIRE(logits_of(merge_heads(weights, in_all_layers(neighbour_groups(4, 4)))) == logits_of(weights));
  const auto statistics = observe_heads(weights, some_text(), {});
  const RegroupOptions options{.num_key_value_heads = 4,
                               .method = GroupingMethod::similarity,
                               .similarity = HeadSimilarity::cosine,
                               .merge = HeadMerge::weighted};
  REQUIRE(logits_of(regroup(weights, options, statistics).weights) == logits_of(weights));
}

TEST_CASE("heads that only change places compute the same, in MHA and in GQA") {
  const ModelWeights weights = load_weights(mha_model().folder());
  require_near(logits_of(merge_heads(weights, in_all_layers({{2}, {0}, {3}, {1}}))), logits_of(weights));
  const ModelWeights grouped = regrouped(weights, 2);
  require_near(logits_of(merge_heads(grouped, in_all_layers({{1}, {0}}))), logits_of(grouped));
  const ModelWeights biased = load_weights(kFamilyFolder / "qwen2");
  Stepper as_it_was(biased), moved(merge_heads(biased, in_all_layers({{1}, {0}})));
  const std::vector<Feed> feeds{{0, Phase::prefill, {5, 17, 3, 40, 11}}};
  require_near(moved.step(feeds), as_it_was.step(feeds));
}

TEST_CASE("merging heads that are alike, wherever they are, leaves the model what it was") {
  ModelWeights weights = load_weights(mha_model().folder());
  copy_head(weights, 0, 3);
  copy_head(weights, 1, 2);
  const auto statistics = observe_heads(weights, some_text(), {});
  for (const HeadSimilarity similarity : {HeadSimilarity::cosine, HeadSimilarity::norm, HeadSimilarity::distance})
    for (const HeadMerge merge : {HeadMerge::mean, HeadMerge::weighted}) {
      const Regrouping result = regroup(
          weights,
          {.num_key_value_heads = 2, .method = GroupingMethod::similarity, .similarity = similarity, .merge = merge},
          statistics);
      for (const RegroupedLayer& layer : result.layers) {
        REQUIRE(layer.groups == HeadGroups{{0, 3}, {1, 2}});
        REQUIRE_THAT(layer.similarity.inside.value(), WithinAbs(1.0, 1e-5));
        REQUIRE(layer.similarity.between.value() < layer.similarity.inside.value());
        REQUIRE(layer.neighbours.inside.value() < layer.similarity.inside.value());
      }
      require_near(logits_of(result.weights), logits_of(weights));
    }
}

TEST_CASE("a weighted merge follows the weights, an unweighted one does not") {
  const ModelWeights weights = load_weights(mha_model().folder());
  const HeadGroups groups{{0, 1}, {2, 3}};
  const ModelWeights one_sided =
      merge_heads(weights, std::vector<LayerMerge>(2, LayerMerge{groups, {1.0, 0.0, 0.0, 0.0}, {}}));
  const ModelWeights pooled = regrouped(weights, 2);
  const auto head_values =
      static_cast<std::size_t>(weights.shape.kinds[0].gqa().heads.head_dim * weights.shape.hidden_size);
  const auto* const before = static_cast<const float*>(weights.layers[1][WeightSlot::qkv_proj].weights[kK].data);
  const auto* const after = static_cast<const float*>(one_sided.layers[1][WeightSlot::qkv_proj].weights[kK].data);
  const auto* const mean = static_cast<const float*>(pooled.layers[1][WeightSlot::qkv_proj].weights[kK].data);
  REQUIRE(std::equal(before, before + head_values, after));
  REQUIRE(std::equal(mean + head_values, mean + 2 * head_values, after + head_values));  // no weight at all: equal
}

TEST_CASE("statistics do not depend on the number of threads") {
  const ModelWeights weights = load_weights(mha_model().folder());
  const auto one = observe_heads(weights, some_text(), {.window_tokens = 64, .num_threads = 1, .on_progress = {}});
  const auto two = observe_heads(weights, some_text(), {.window_tokens = 64, .num_threads = 2, .on_progress = {}});
  for (std::size_t layer = 0; layer < one.size(); ++layer)
    for (int a = 0; a < 4; ++a)
      for (int b = 0; b < a; ++b)
        REQUIRE(one[layer].similarity(HeadSimilarity::cosine)(a, b) ==
                two[layer].similarity(HeadSimilarity::cosine)(a, b));
}

TEST_CASE("RoPE does not change how alike heads are") {
  Stepper stepper(load_weights(mha_model().folder()));
  HeadStatistics before(stepper.executor().shape());
  HeadStatistics after(stepper.executor().shape());
  dynamic_cast<CpuExecutor&>(stepper.executor())
      .observe_ops([&](const Op& op, int layer, std::span<const float> input) {
        if (layer == 0 && op.kind == OpKind::rope_and_cache) before.add_qkv(input);
        if (layer == 0 && op.kind == OpKind::attention_prefill) after.add_qkv(input);
      });
  stepper.step({{0, Phase::prefill, mha_model().prompts()[0].tokens}});
  for (const HeadSimilarity kind : {HeadSimilarity::cosine, HeadSimilarity::norm, HeadSimilarity::distance})
    for (int a = 0; a < 4; ++a)
      for (int b = 0; b < a; ++b)
        REQUIRE_THAT(after.similarity(kind)(a, b), WithinAbs(before.similarity(kind)(a, b), 1e-5));
}

TEST_CASE("what cannot be regrouped is refused") {
  ModelWeights weights = load_weights(mha_model().folder());
  for (const int kv_heads : {-1, 0, 3, 8})
    REQUIRE_THROWS_WITH(regroup(weights, {.num_key_value_heads = kv_heads}, {}),
                        ContainsSubstring("the model's 4 KV heads cannot be pooled into"));
  REQUIRE_THROWS_WITH(observe_heads(weights, {}, {}), ContainsSubstring("empty"));

  ModelWeights changed = weights;
  changed.shape.quantization = WeightFormat{Dtype::int4, 32};
  REQUIRE_THROWS_WITH(regroup(changed, {.num_key_value_heads = 2}, {}), ContainsSubstring("quantized"));

  *reinterpret_cast<float*>(writable(weights.layers[1][WeightSlot::qkv_proj].weights[kV])) =
      std::numeric_limits<float>::quiet_NaN();
  REQUIRE_THROWS_WITH(observe_heads(weights, some_text(), {}), ContainsSubstring("layer 1 NaN or infinite"));
}

}  // namespace dculab::engine
