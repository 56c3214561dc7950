// Merging KV heads by SVD: nothing is lost of heads that are maps of one another, and of others as little as can be.
#include <cmath>
#include <complex>
#include <numeric>
#include <vector>

#include "engine/checkpoint/model_loader.hpp"
#include "engine/checkpoint/stored_values.hpp"
#include "engine/regroup/head_calibration.hpp"
#include "engine/regroup/mean_pool.hpp"
#include "engine/regroup/regroup.hpp"
#include "engine/regroup/svd_merge.hpp"
#include "engine/tokenizer/tokenizer.hpp"
#include "model/folder/model_files.hpp"
#include "tests/engine/support/regroup_model.hpp"
#include "tests/engine/support/text_scores.hpp"
#include "tests/support/catch.hpp"

namespace dculab::engine {
namespace {

using Map = std::vector<double>;  // [head_dim, head_dim]

// Any invertible map: far from a rotation, far from singular.
Map any_map(int head_dim, int seed) {
  Map map(static_cast<std::size_t>(head_dim * head_dim));
  for (int i = 0; i < head_dim; ++i)
    for (int j = 0; j < head_dim; ++j)
      map[static_cast<std::size_t>(i * head_dim + j)] = (i == j ? 1.2 : 0.0) + 0.3 * std::sin(seed + 3 * i + 7 * j);
  return map;
}

// In every plane of RoPE another turn, and another length.
Map plane_map(int head_dim, int seed) {
  Map map(static_cast<std::size_t>(head_dim * head_dim));
  const int half = head_dim / 2;
  for (int plane = 0; plane < half; ++plane) {
    const std::complex<double> factor = std::polar(0.7 + 0.2 * plane, 1.0 + seed + 2.0 * plane);
    const auto at = [&](int row, int column) -> double& {
      return map[static_cast<std::size_t>(row * head_dim + column)];
    };
    at(plane, plane) = at(plane + half, plane + half) = factor.real();
    at(plane, plane + half) = -factor.imag();
    at(plane + half, plane) = factor.imag();
  }
  return map;
}

// In a matrix of heads, or their bias (one column): head `to` becomes map * head `from`.
void relate(const kernels::WeightView& view, int columns, int from, int to, const Map& map) {
  const int head_dim = static_cast<int>(std::lround(std::sqrt(static_cast<double>(map.size()))));
  std::vector<float> values(static_cast<std::size_t>(view.rows * columns));
  widen(view.data, view.dtype, values);
  const auto at = [&](int head, int row, int column) -> float& {
    return values[static_cast<std::size_t>((head * head_dim + row) * columns + column)];
  };
  for (int column = 0; column < columns; ++column)
    for (int row = 0; row < head_dim; ++row) {
      double sum = 0;
      for (int i = 0; i < head_dim; ++i) sum += map[static_cast<std::size_t>(row * head_dim + i)] * at(from, i, column);
      at(to, row, column) = static_cast<float>(sum);
    }
  narrow(values, view.dtype, writable(view));
}

void relate_heads(const ModelWeights& weights, int from, int to, const Map& k, const Map& v) {
  for (const WeightSlots& layer : weights.layers) {
    relate(layer[WeightSlot::qkv_proj].weights[kK], weights.shape.hidden_size, from, to, k);
    relate(layer[WeightSlot::qkv_proj].weights[kV], weights.shape.hidden_size, from, to, v);
    if (!weights.shape.kinds[0].gqa().qkv_bias) continue;
    relate(layer[WeightSlot::qkv_proj].biases[kK], 1, from, to, k);
    relate(layer[WeightSlot::qkv_proj].biases[kV], 1, from, to, v);
  }
}

constexpr RegroupOptions kNeighbours{.num_key_value_heads = 2, .merge = HeadMerge::svd};
const TextRun kWindows{.window_tokens = 64, .on_progress = {}};

std::vector<Logits> logits_after(const ModelWeights& weights, const std::vector<TokenId>& tokens) {
  return Stepper(weights).step({{0, Phase::prefill, tokens}});
}

ModelWeights svd_merged(const ModelWeights& weights, const std::vector<TokenId>& text, RegroupOptions options) {
  return regroup(weights, options, observe_heads(weights, text, kWindows, SecondMoments::collect)).weights;
}

const std::vector<TokenId> kMergedText{5, 17, 3, 40, 11, 28, 9, 33, 2, 61, 44, 7};

}  // namespace

TEST_CASE("heads that are maps of one another, wherever they are, are found and merged without loss") {
  const ModelWeights weights = load_weights(mha_model().folder());
  relate_heads(weights, 0, 3, plane_map(8, 1), any_map(8, 1));
  relate_heads(weights, 1, 2, plane_map(8, 2), any_map(8, 2));
  const auto statistics = observe_heads(weights, some_text(), kWindows, SecondMoments::collect);
  const Regrouping result = regroup(weights,
                                    {.num_key_value_heads = 2,
                                     .method = GroupingMethod::similarity,
                                     .similarity = HeadSimilarity::svd,
                                     .merge = HeadMerge::svd},
                                    statistics);
  for (const RegroupedLayer& layer : result.layers) {
    CHECK(layer.groups == HeadGroups{{0, 3}, {1, 2}});
    CHECK_THAT(layer.similarity.inside.value(), WithinAbs(1.0, 1e-6));
    CHECK(layer.similarity.between.value() < 0.95);
  }
  require_near(logits_of(result.weights), logits_of(weights));
}

TEST_CASE("all heads of a layer can be maps of one") {
  const ModelWeights weights = load_weights(mha_model().folder());
  for (const int head : {0, 2, 3}) relate_heads(weights, 1, head, plane_map(8, head), any_map(8, head));
  require_near(logits_of(svd_merged(weights, some_text(), {.num_key_value_heads = 1, .merge = HeadMerge::svd})),
               logits_of(weights));
}

TEST_CASE("query heads that share a KV head, and biases, follow the maps") {
  ModelWeights weights = regrouped(load_weights(mha_model().folder()), 2);
  REQUIRE(weights.shape.heads().group_size() == 2);
  std::vector<float> biases(32);  // the same for Q, K and V of all layers
  for (std::size_t i = 0; i < biases.size(); ++i) biases[i] = 0.3F * std::sin(static_cast<float>(i));
  std::vector<float> k_bias = biases, v_bias = biases;
  weights.shape.kinds[0].gqa().qkv_bias = true;
  const Map turn = plane_map(8, 1), map = any_map(8, 1);
  for (WeightSlots& layer : weights.layers) {
    layer[WeightSlot::qkv_proj].biases[kQ] = {biases.data(), Dtype::f32, weights.shape.heads().query_width()};
    layer[WeightSlot::qkv_proj].biases[kK] = {k_bias.data(), Dtype::f32, weights.shape.heads().kv_width()};
    layer[WeightSlot::qkv_proj].biases[kV] = {v_bias.data(), Dtype::f32, weights.shape.heads().kv_width()};
  }
  relate_heads(weights, 0, 1, turn, map);
  require_near(logits_of(svd_merged(weights, some_text(), {.num_key_value_heads = 1, .merge = HeadMerge::svd})),
               logits_of(weights));
}

TEST_CASE("with ALiBi any map of K is undone, and what K is on the mean does not matter") {
  const ModelWeights weights = load_weights(kFamilyFolder / "bloom");
  REQUIRE(weights.shape.kinds[0].gqa().position.kind == PositionKind::alibi);
  for (const int head : {0, 2})
    relate_heads(weights, head, head + 1, any_map(weights.shape.kinds[0].gqa().heads.head_dim, head + 1),
                 any_map(weights.shape.kinds[0].gqa().heads.head_dim, 1));
  for (const WeightSlots& layer : weights.layers)
    reinterpret_cast<float*>(
        writable(layer[WeightSlot::qkv_proj].biases[kK]))[weights.shape.kinds[0].gqa().heads.head_dim] +=
        3.0F;  // of head 1 alone
  require_near(logits_after(svd_merged(weights, kMergedText, kNeighbours), kMergedText),
               logits_after(weights, kMergedText));
}

TEST_CASE("equal heads become what they are, and heads of their own stay as they are to the last bit") {
  const ModelWeights weights = load_weights(mha_model().folder());
  Map same(64);
  for (std::size_t i = 0; i < 8; ++i) same[9 * i] = 1.0;
  relate_heads(weights, 0, 1, same, same);
  const ModelWeights merged = svd_merged(weights, some_text(), kNeighbours);
  for (std::size_t layer = 0; layer < 2; ++layer)
    for (const std::size_t part : {kK, kV, kQ}) {
      const auto part_of = [&](const ModelWeights& model) {
        return static_cast<const float*>(model.layers[layer][WeightSlot::qkv_proj].weights[part].data);
      };
      const auto *const before = part_of(weights), *const after = part_of(merged);
      for (int i = 0; i < 8 * weights.shape.hidden_size; ++i) REQUIRE_THAT(after[i], WithinAbs(before[i], 1e-5));
    }
  const RegroupOptions alone{.num_key_value_heads = 4, .merge = HeadMerge::svd};
  REQUIRE(logits_of(svd_merged(weights, some_text(), alone)) == logits_of(weights));
}

TEST_CASE("what two heads lose, by hand") {
  ModelShape shape;
  shape.hidden_size = 4;
  shape.kinds[0].gqa().heads.num_attention_heads = shape.kinds[0].gqa().heads.num_key_value_heads =
      shape.kinds[0].gqa().heads.head_dim = 2;
  HeadMoments moments(shape);
  //                        Q                    K                    V
  moments.add_qkv(std::vector{1.F, 0.F, 2.F, 0.F, 3.F, 0.F, 0.F, 0.F, 2.F, 0.F, 0.F, 0.F});
  moments.add_qkv(std::vector{0.F, 0.F, 0.F, 0.F, 0.F, 0.F, 0.F, 1.F, 0.F, 1.F, 0.F, 0.F});
  moments.add_qkv(std::vector{0.F, 0.F, 0.F, 0.F, 0.F, 0.F, 0.F, 0.F, 0.F, 0.F, 3.F, 0.F});
  const std::vector<float> o_proj{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 2, 0, 0, 0, 0, 2};
  const kernels::WeightView view{o_proj.data(), Dtype::f32, 4};
  // K: |q|^2 |k|^2 is 1 * 9 and 4 * 1, one of the two planes is left: 4 of (9 + 4) / 2 are lost.
  // V: |O v|^2 is 4, 1 and 4 * 9 in three directions, two of them are left: 1 of 41 / 2 is lost.
  CHECK_THAT(svd_similarity(shape, moments, view)(0, 1), WithinRel(1 - (8.0 / 13 + 2.0 / 41) / 2, 1e-12));
  const GroupMaps maps = svd_maps(shape, moments, view, {{0, 1}}).front();
  const std::vector<float>& encode = maps.k.encode;  // [2, 4]: head 0 as it is, times sqrt(2) in the way back
  CHECK_THAT(encode[0] * maps.k.decode[0], WithinAbs(1.0, 1e-6));
  CHECK_THAT(encode[2], WithinAbs(0.0, 1e-6));
  CHECK_THAT(maps.k.decode[4], WithinAbs(0.0, 1e-6));
}

TEST_CASE("on the shipped model SVD loses less than weighted means, at every number of heads", "[once]") {
  const auto folder = std::filesystem::path(DCULAB_SOURCE_DIR) / "scenarios/models/dculab-tiny";
  const ModelWeights weights = load_weights(folder);
  const Tokenizer tokenizer = Tokenizer::load(folder / "tokenizer.json");
  const auto tokens_of = [&](const std::filesystem::path& file, std::size_t count) {
    std::vector<TokenId> ids = tokenizer.encode(read_model_text(file), SpecialTokens::omit);
    ids.resize(count);
    return ids;
  };
  std::vector<std::vector<TokenId>> texts;
  const std::vector<TokenId> held_out = tokens_of(folder / "eval/held-out.txt", 8 * 128);
  for (auto start = held_out.begin(); start != held_out.end(); start += 128) texts.emplace_back(start, start + 128);
  const auto statistics =
      observe_heads(weights, tokens_of(folder / "calibration.txt", 2048), {}, SecondMoments::collect);
  const auto loss = [&](int heads, HeadMerge merge) {
    const Regrouping result = regroup(weights, {.num_key_value_heads = heads, .merge = merge}, statistics);
    CpuExecutor executor(result.weights, {.num_blocks = 80, .block_size = 16, .dtype = Dtype::f32}, 1);
    double sum = 0;
    EngineOptions options;
    options.kv_cache_dtype = Dtype::f32;
    options.weights = result.weights.shape.layer_format();
    for (const std::vector<double>& text : token_log_probabilities(executor, options, texts))
      sum -= std::accumulate(text.begin(), text.end(), 0.0);
    return sum;
  };
  for (const int heads : {4, 2, 1}) CHECK(loss(heads, HeadMerge::svd) < loss(heads, HeadMerge::weighted));
}

}  // namespace dculab::engine
