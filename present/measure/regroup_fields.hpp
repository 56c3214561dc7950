// The fields of what `dculab regroup` answers.
#pragma once

#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "present/measure/regroup_report.hpp"
#include "present/output/field_json.hpp"

namespace dculab::present {

struct ToldRegrouping {
  const study::RegroupQuestion& question;
  const study::RegroupedFolder& made;
};

struct ToldLayer {
  std::size_t layer = 0;
  const engine::RegroupedLayer& grouped;
};

// Of QCQA.
struct ToldFrontPoint {
  const ModelShape& before;
  const engine::LayersPoint& point;
};

// Of a token in F16, with so many KV heads in all layers together.
[[nodiscard]] Bytes f16_kv_bytes(const ModelShape& before, int kv_heads);
[[nodiscard]] int all_kv_heads(const engine::Regrouping& result);

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<present::ToldFrontPoint> {
  using Told = present::ToldFrontPoint;
  static constexpr std::string_view id = "front_point";
  static constexpr std::string_view doc = "What a size of the KV cache loses at least.";
  static constexpr auto fields = std::tuple(
      field("kv_heads", "of all layers together", unit::count, [](const Told& told) { return told.point.kv_heads; }),
      field("kv_bytes_per_token_f16", "of K and V",
            [](const Told& told) { return present::f16_kv_bytes(told.before, told.point.kv_heads); }),
      field("error", "the part of K and V of all heads that is lost, mean of the layers", unit::share,
            [](const Told& told) { return told.point.error / told.before.num_layers(); }));
};

template <>
struct FieldList<present::ToldLayer> {
  using Told = present::ToldLayer;
  static constexpr std::string_view id = "regrouped_layer";
  static constexpr std::string_view doc = "Which heads of a layer became one, and how alike they are.";
  static constexpr auto fields =
      std::tuple(field("layer", "counted from 0", &Told::layer),
                 field("groups", "heads of each new head", [](const Told& told) { return told.grouped.groups; }),
                 field("weights", "of each head within its group; empty: equal", unit::share,
                       [](const Told& told) { return told.grouped.weights; }),
                 field("key_factors", "that were fitted, of each head; empty: none", unit::ratio,
                       [](const Told& told) { return told.grouped.factors.k; }),
                 field("value_factors", "that were fitted, of each head; empty: none", unit::ratio,
                       [](const Told& told) { return told.grouped.factors.v; }),
                 field("similarity_inside", "mean over pairs of heads of one group; null without statistics",
                       [](const Told& told) { return or_null(told.grouped.similarity.inside); }),
                 field("similarity_between", "mean over pairs of heads of two groups; null without statistics",
                       [](const Told& told) { return or_null(told.grouped.similarity.between); }),
                 field("neighbours_inside", "the same for groups of neighbouring heads",
                       [](const Told& told) { return or_null(told.grouped.neighbours.inside); }),
                 field("neighbours_between", "the same for groups of neighbouring heads",
                       [](const Told& told) { return or_null(told.grouped.neighbours.between); }));
};

template <>
struct FieldList<present::ToldRegrouping> {
  using Told = present::ToldRegrouping;
  static constexpr std::string_view id = "regrouping";
  static constexpr std::string_view doc = "A model with fewer KV heads.";

  [[nodiscard]] static std::vector<present::ToldFrontPoint> front(const Told& told) {
    std::vector<present::ToldFrontPoint> points;
    for (const engine::LayersPoint& point : told.made.result.front) points.push_back({told.made.before, point});
    return points;
  }
  [[nodiscard]] static std::vector<present::ToldLayer> layers(const Told& told) {
    std::vector<present::ToldLayer> layers;
    for (std::size_t layer = 0; layer < told.made.result.layers.size(); ++layer)
      layers.push_back({layer, told.made.result.layers[layer]});
    return layers;
  }

  static constexpr auto fields = std::tuple(
      field("model", "its name", [](const Told& told) { return told.made.before.name; }),
      field("num_key_value_heads_before", "of a layer", unit::count,
            [](const Told& told) { return told.made.before.heads().num_key_value_heads; }),
      field("num_key_value_heads", "of a layer; on average where layers differ", unit::count,
            [](const Told& told) { return told.question.options.num_key_value_heads; }),
      field("method", "how heads are grouped", [](const Told& told) { return name(told.question.options.method); }),
      field("similarity", "by which heads are alike",
            [](const Told& told) { return name(told.question.options.similarity); }),
      field("compare", "what of the heads: kv, query, output",
            [](const Told& told) { return name(told.question.options.compared); }),
      field("error", "that qcqa makes small", [](const Told& told) { return name(told.question.options.error); }),
      field("seed", "of the search", [](const Told& told) { return told.question.options.search.seed; }),
      field("merge", "how the heads of a group become one",
            [](const Told& told) { return name(told.question.options.merge); }),
      field("calibration_tokens", "of the text; 0: none", unit::tokens,
            [](const Told& told) { return told.made.calibration_tokens; }),
      field("kv_heads_of_all_layers", "that are left", unit::count,
            [](const Told& told) { return present::all_kv_heads(told.made.result); }),
      field("kv_bytes_per_token_f16", "of K and V",
            [](const Told& told) {
              return present::f16_kv_bytes(told.made.before, present::all_kv_heads(told.made.result));
            }),
      field("folder", "that was written", [](const Told& told) { return told.question.folder; }),
      field("front", "of qcqa: the best error for every number of KV heads", &front),
      field("layers", "in their order", &layers));
};

}  // namespace dculab
