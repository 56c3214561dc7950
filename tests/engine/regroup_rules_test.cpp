// Rules of grouping beyond similar K and V: what they group, and what they lose.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "core/error.hpp"
#include "engine/checkpoint/model_loader.hpp"
#include "engine/regroup/head_calibration.hpp"
#include "engine/regroup/head_merge.hpp"
#include "engine/regroup/key_norm_groups.hpp"
#include "engine/regroup/regroup.hpp"
#include "tests/engine/support/regroup_model.hpp"
#include "tests/support/catch.hpp"

namespace dculab::engine {
namespace {

// Symmetric and positive, as products of random vectors are.
SimilarityMatrix random_products(int heads, std::uint64_t seed) {
  std::vector<std::vector<double>> vectors(static_cast<std::size_t>(heads), std::vector<double>(5));
  for (std::vector<double>& vector : vectors)
    for (double& value : vector) {
      seed = seed * 6364136223846793005U + 1442695040888963407U;
      value = static_cast<double>(seed >> 40U) / static_cast<double>(1U << 24U) - 0.5;
    }
  SimilarityMatrix products(heads);
  for (int a = 0; a < heads; ++a)
    for (int b = 0; b <= a; ++b) {
      double sum = 0;
      for (std::size_t i = 0; i < 5; ++i)
        sum += vectors[static_cast<std::size_t>(a)][i] * vectors[static_cast<std::size_t>(b)][i];
      products.set(a, b, sum);
    }
  return products;
}

double summed_error(const HeadGroups& groups, const GroupError& error) {
  double sum = 0;
  for (const std::vector<int>& group : groups) sum += error(group);
  return sum;
}

// Calls visit(groups) with every partition of `heads` heads: head by head, into each group there is or a new one.
template <class Visit>
void for_all_partitions(int heads, HeadGroups& groups, int head, Visit&& visit) {
  if (head == heads) return visit(groups);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    groups[i].push_back(head);
    for_all_partitions(heads, groups, head + 1, visit);
    groups[i].pop_back();
  }
  groups.push_back({head});
  for_all_partitions(heads, groups, head + 1, visit);
  groups.pop_back();
}

// The least error of each number of groups.
std::map<std::size_t, double> least_errors(int heads, const GroupError& error) {
  std::map<std::size_t, double> least;
  HeadGroups groups;
  for_all_partitions(heads, groups, 0, [&](const HeadGroups& all) {
    const auto [found, is_first] = least.try_emplace(all.size(), summed_error(all, error));
    if (!is_first) found->second = std::min(found->second, summed_error(all, error));
  });
  return least;
}

}  // namespace

TEST_CASE("heads with equal queries are found by their queries, wherever they are", "[regroup]") {
  ModelWeights weights = load_weights(mha_model().folder());
  copy_rows(weights, 0, 3, Parts::query);
  copy_rows(weights, 1, 2, Parts::query);
  const auto statistics = observe_heads(weights, some_text(), {});
  for (const HeadSimilarity kind : {HeadSimilarity::cosine, HeadSimilarity::norm, HeadSimilarity::distance})
    for (const HeadStatistics& layer : statistics) {
      const SimilarityMatrix similarity = layer.similarity(kind, {}, ComparedHeads::query);
      REQUIRE(similar_groups(similarity, 2) == HeadGroups{{0, 3}, {1, 2}});
      REQUIRE_THAT(similarity(0, 3), WithinAbs(1.0, 1e-5));
    }
}

TEST_CASE("heads that put out the same are found by their outputs, and merge without loss", "[regroup]") {
  ModelWeights weights = load_weights(mha_model().folder());
  copy_rows(weights, 0, 2, Parts::all);
  copy_rows(weights, 1, 3, Parts::all);
  for (const HeadMerge merge : {HeadMerge::mean, HeadMerge::weighted, HeadMerge::fitted}) {
    const auto moments = observe_heads(weights, some_text(), {}, SecondMoments::collect);
    const Regrouping result = regroup(weights,
                                      {.num_key_value_heads = 2,
                                       .method = GroupingMethod::similarity,
                                       .similarity = HeadSimilarity::norm,
                                       .merge = merge,
                                       .compared = ComparedHeads::output},
                                      moments);
    for (const RegroupedLayer& layer : result.layers) REQUIRE(layer.groups == HeadGroups{{0, 2}, {1, 3}});
    require_near(logits_of(result.weights), logits_of(weights));
  }
}

TEST_CASE("similarities of queries and outputs, by hand", "[regroup]") {
  ModelShape shape;
  shape.hidden_size = 4;
  shape.kinds[0].gqa().heads = {4, 2, 1};  // two query heads of one value for each KV head
  HeadStatistics statistics(shape);
  //                             Q                     K         V
  statistics.add_qkv(std::vector{3.F, 4.F, 4.F, 3.F, 1.F, 2.F, 1.F, 1.F});
  statistics.add_attention(std::vector{0.F, 1.F, 0.F, 4.F});
  REQUIRE_THAT(statistics.similarity(HeadSimilarity::cosine, {}, ComparedHeads::query)(0, 1), WithinAbs(0.96, 1e-12));
  REQUIRE_THAT(statistics.similarity(HeadSimilarity::norm, {}, ComparedHeads::output)(0, 1), WithinAbs(0.25, 1e-12));
  REQUIRE(statistics.key_products()(0, 1) == 2);
  REQUIRE(statistics.key_products()(1, 1) == 4);
  REQUIRE(statistics.value_products()(0, 1) == 1);
}

TEST_CASE("query heads are shared out by the norms of keys", "[regroup]") {
  const auto shared = [](int total, std::vector<double> parts) { return shared_out(total, parts); };
  REQUIRE(shared(8, {1, 1}) == std::vector{4, 4});
  REQUIRE(shared(8, {3, 1}) == std::vector{6, 2});
  REQUIRE(shared(8, {1, 0, 0}) == std::vector{6, 1, 1});
  REQUIRE(shared(8, {0, 0, 0}) == std::vector{3, 3, 2});
  REQUIRE(shared(3, {5, 1, 1}) == std::vector{1, 1, 1});
  REQUIRE(shared(7, {2.6, 2.6, 1.8}) == std::vector{3, 2, 2});
  for (const double large : {1.0, 7.0, 100.0})
    for (int total = 4; total < 40; ++total) {
      const std::vector<int> shares = shared(total, {large, 1, 2, 0.1});
      REQUIRE(shares[0] + shares[1] + shares[2] + shares[3] == total);
      REQUIRE(std::ranges::min(shares) >= 1);
    }
  SimilarityMatrix products(8);  // keys at right angles: those of the first half are three times as long
  for (int head = 0; head < 8; ++head) products.set(head, head, head < 4 ? 9 : 1);
  REQUIRE(key_norm_groups(products, 2) == HeadGroups{{0, 1, 2, 3, 4, 5}, {6, 7}});
}

TEST_CASE("what a mean loses, by hand", "[regroup]") {
  SimilarityMatrix keys(3), values(3);  // keys (1, 0), (-1, 0), (0, 2); values all (1, 0)
  for (const auto& [a, b, product] : {std::tuple{0, 0, 1.0}, {0, 1, -1.0}, {1, 1, 1.0}, {2, 2, 4.0}})
    keys.set(a, b, product);
  for (int a = 0; a < 3; ++a)
    for (int b = 0; b <= a; ++b) values.set(a, b, 1);
  const GroupError error = mean_error(keys, values);
  REQUIRE(error({1}) == 0);
  REQUIRE_THAT(error({0, 1}), WithinAbs((2.0 / 6 + 0) / 2, 1e-12));
  REQUIRE_THAT(error({0, 2}), WithinAbs(((1 + 4 - 5.0 / 2) / 6 + 0) / 2, 1e-12));
  const std::vector<float> rows{1, 2, 3, 4};  // two heads of one row, of two columns
  const SimilarityMatrix products = weight_products({rows.data(), Dtype::f32, 2}, {2, 2, 1}, 2);
  REQUIRE(products(0, 0) == 5);
  REQUIRE(products(0, 1) == 11);
  REQUIRE(products(1, 1) == 25);
}

TEST_CASE("the searched front is the best of all partitions of few heads, and the same for a seed", "[regroup]") {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    const GroupError error = mean_error(random_products(8, seed), random_products(8, seed + 10));
    const std::vector<GroupingPoint> front = search_groups(8, error, {.seed = seed});
    const std::map<std::size_t, double> least = least_errors(8, error);
    REQUIRE(front.size() == 8);
    for (std::size_t i = 0; i < front.size(); ++i) {
      REQUIRE(front[i].groups.size() == i + 1);
      REQUIRE_THAT(front[i].error, WithinAbs(least.at(i + 1), 1e-12));
      REQUIRE_THAT(front[i].error, WithinAbs(summed_error(front[i].groups, error), 1e-12));
      if (i > 0) REQUIRE(front[i].error < front[i - 1].error);
    }
    const std::vector<GroupingPoint> again = search_groups(8, error, {.seed = seed});
    for (std::size_t i = 0; i < front.size(); ++i) REQUIRE(again[i].groups == front[i].groups);
  }
}

TEST_CASE("the front of many heads is never beaten by neighbours or by itself", "[regroup]") {
  const GroupError error = mean_error(random_products(24, 5), random_products(24, 6));
  const std::vector<GroupingPoint> front = search_groups(24, error, {.population = 32, .generations = 20});
  for (std::size_t i = 1; i < front.size(); ++i) {
    REQUIRE(front[i].groups.size() > front[i - 1].groups.size());
    REQUIRE(front[i].error < front[i - 1].error);
  }
  for (const int count : {1, 2, 3, 4, 6, 8, 12, 24}) {
    const auto found = std::ranges::find_if(
        front, [count](const GroupingPoint& point) { return static_cast<int>(point.groups.size()) == count; });
    REQUIRE(found != front.end());
    REQUIRE(found->error <= summed_error(neighbour_groups(24, count), error) + 1e-12);
  }
}

TEST_CASE("fronts of layers make the best choices for all of them", "[regroup]") {
  std::vector<std::vector<GroupingPoint>> fronts;
  for (const std::uint64_t seed : {1U, 2U, 3U})
    fronts.push_back(search_groups(5, mean_error(random_products(5, seed), random_products(5, seed + 9)), {}));
  const std::vector<LayersPoint> points = combine_fronts(fronts);
  REQUIRE(points.front().kv_heads == 3);
  REQUIRE_THAT(points.back().error, WithinAbs(0.0, 1e-12));
  for (std::size_t i = 1; i < points.size(); ++i) REQUIRE(points[i].error < points[i - 1].error);
  for (const LayersPoint& point : points) {
    double least = std::numeric_limits<double>::infinity(), own = 0;
    for (const GroupingPoint& a : fronts[0])
      for (const GroupingPoint& b : fronts[1])
        for (const GroupingPoint& c : fronts[2])
          if (static_cast<int>(a.groups.size() + b.groups.size() + c.groups.size()) <= point.kv_heads)
            least = std::min(least, a.error + b.error + c.error);
    for (std::size_t layer = 0; layer < 3; ++layer) own += fronts[layer][point.choice[layer]].error;
    REQUIRE_THAT(point.error, WithinAbs(least, 1e-12));
    REQUIRE_THAT(own, WithinAbs(least, 1e-12));
  }
}

TEST_CASE("fitted weights, by hand", "[regroup]") {
  ModelShape shape;
  shape.hidden_size = 2;
  shape.kinds[0].gqa().heads = {2, 2, 2};
  HeadMoments moments(shape);
  //                          Q           K heads, at right angles   V heads: the second is twice the first
  moments.add_qkv(std::vector{1.F, 0.F, 2.F, 0.F, 1.F, 0.F, 0.F, 1.F, 1.F, 1.F, 2.F, 2.F});
  const std::vector<float> o_proj{1, 0, 3, 0, 0, 1, 0, 3};  // [2, 4]: 1 and 3 times the identity
  const HeadFactors factors = fitted_factors(shape, moments, {o_proj.data(), Dtype::f32, 2}, {{0, 1}});
  // V: s = c v_0, (1 - c)^2 + 9 (2 - c)^2 is least for c = 1.9 = w_0 + 2 w_1, of which the shortest is 0.38 (1, 2).
  REQUIRE_THAT(factors.v[0], WithinAbs(0.38, 1e-9));
  REQUIRE_THAT(factors.v[1], WithinAbs(0.76, 1e-9));
  // K: planes weigh 1/2 and 4/2; (1 - w_0)^2 + w_1^2 and w_0^2 + (1 - w_1)^2 are least together where w_0 = 1/5.
  REQUIRE_THAT(factors.k[0], WithinAbs(0.2, 1e-9));
  REQUIRE_THAT(factors.k[1], WithinAbs(0.8, 1e-9));
  const HeadFactors apart = fitted_factors(shape, moments, {o_proj.data(), Dtype::f32, 2}, {{0}, {1}});
  REQUIRE(apart.k == std::vector{1.0, 1.0});
}

TEST_CASE("the search takes heads that are alike together, within the KV heads that it is given", "[regroup]") {
  ModelWeights weights = load_weights(mha_model().folder());
  copy_rows(weights, 0, 1, Parts::all);
  copy_rows(weights, 0, 3, Parts::all);
  const auto statistics = observe_heads(weights, some_text(), {}, SecondMoments::collect);
  for (const LostError error : {LostError::weights, LostError::activations, LostError::svd}) {
    const RegroupOptions options{.num_key_value_heads = 2, .method = GroupingMethod::qcqa, .error = error};
    const Regrouping result = regroup(weights, options, statistics);
    for (const RegroupedLayer& layer : result.layers) REQUIRE(layer.groups == HeadGroups{{2}, {0, 1, 3}});
    REQUIRE(result.front.front().kv_heads == 2);
    REQUIRE(result.front.size() >= 3);
    require_near(logits_of(result.weights), logits_of(weights));
    const Regrouping one =
        regroup(weights, {.num_key_value_heads = 1, .method = GroupingMethod::qcqa, .error = error}, statistics);
    for (const RegroupedLayer& layer : one.layers) REQUIRE(layer.groups.size() == 1);
  }
  REQUIRE_THROWS_WITH(regroup(weights, {.num_key_value_heads = 5, .method = GroupingMethod::qcqa}, {}),
                      ContainsSubstring("can keep 1 to 4 on average, not 5"));
}

}  // namespace dculab::engine
