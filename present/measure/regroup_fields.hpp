// The fields of what `dculab regroup` answers.
#pragma once

#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "present/measure/regroup_report.hpp"
#include "present/output/field_json.hpp"

namespace dculab::present {

struct ReportedRegrouping {
  const study::RegroupQuestion& question;
  const study::RegroupedFolder& made;
};

struct ReportedLayer {
  std::size_t layer = 0;
  const engine::RegroupedLayer& grouped;
};

// Of QCQA.
struct ReportedFrontPoint {
  const ModelShape& before;
  const engine::LayersPoint& point;
};

// Of a token in F16, with `kv_heads` KV heads in all layers together.
[[nodiscard]] Bytes f16_kv_bytes(const ModelShape& before, int kv_heads);
[[nodiscard]] int all_kv_heads(const engine::Regrouping& result);

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<present::ReportedFrontPoint> {
  using Self = present::ReportedFrontPoint;
  static constexpr std::string_view id = "front_point";
  static constexpr std::string_view doc = "What a size of the KV cache loses at least.";
  static constexpr auto fields = std::tuple(
      field("kv_heads", "of all layers together", unit::count,
            [](const Self& reported) { return reported.point.kv_heads; }),
      field("kv_bytes_per_token_f16", "of K and V",
            [](const Self& reported) { return present::f16_kv_bytes(reported.before, reported.point.kv_heads); }),
      field("error", "the part of K and V of all heads that is lost, mean of the layers", unit::share,
            [](const Self& reported) { return reported.point.error / reported.before.num_layers(); }));
};

template <>
struct FieldList<present::ReportedLayer> {
  using Self = present::ReportedLayer;
  static constexpr std::string_view id = "regrouped_layer";
  static constexpr std::string_view doc = "Which heads of a layer became one, and how alike they are.";
  static constexpr auto fields = std::tuple(
      field("layer", "counted from 0", &Self::layer),
      field("groups", "heads of each new head", [](const Self& reported) { return reported.grouped.groups; }),
      field("weights", "of each head within its group; empty: equal", unit::share,
            [](const Self& reported) { return reported.grouped.weights; }),
      field("key_factors", "that were fitted, of each head; empty: none", unit::ratio,
            [](const Self& reported) { return reported.grouped.factors.k; }),
      field("value_factors", "that were fitted, of each head; empty: none", unit::ratio,
            [](const Self& reported) { return reported.grouped.factors.v; }),
      field("similarity_inside", "mean over pairs of heads of one group; null without statistics",
            [](const Self& reported) { return or_null(reported.grouped.similarity.inside); }),
      field("similarity_between", "mean over pairs of heads of two groups; null without statistics",
            [](const Self& reported) { return or_null(reported.grouped.similarity.between); }),
      field("neighbours_inside", "the same for groups of neighbouring heads",
            [](const Self& reported) { return or_null(reported.grouped.neighbours.inside); }),
      field("neighbours_between", "the same for groups of neighbouring heads",
            [](const Self& reported) { return or_null(reported.grouped.neighbours.between); }));
};

template <>
struct FieldList<present::ReportedRegrouping> {
  using Self = present::ReportedRegrouping;
  static constexpr std::string_view id = "regrouping";
  static constexpr std::string_view doc = "A model with fewer KV heads.";
  static constexpr std::string_view csv_rows = "layers";

  [[nodiscard]] static std::vector<present::ReportedFrontPoint> front(const Self& reported) {
    std::vector<present::ReportedFrontPoint> points;
    for (const engine::LayersPoint& point : reported.made.result.front) points.push_back({reported.made.before, point});
    return points;
  }
  [[nodiscard]] static std::vector<present::ReportedLayer> layers(const Self& reported) {
    std::vector<present::ReportedLayer> layers;
    for (std::size_t layer = 0; layer < reported.made.result.layers.size(); ++layer)
      layers.push_back({layer, reported.made.result.layers[layer]});
    return layers;
  }

  static constexpr auto fields = std::tuple(
      field("model", "its name", [](const Self& reported) { return reported.made.before.name; }),
      field("num_key_value_heads_before", "of a layer", unit::count,
            [](const Self& reported) { return reported.made.before.heads().num_key_value_heads; }),
      field("num_key_value_heads", "of a layer; on average where layers differ", unit::count,
            [](const Self& reported) { return reported.question.options.num_key_value_heads; }),
      field("method", "how heads are grouped",
            [](const Self& reported) { return name(reported.question.options.method); }),
      field("similarity", "by which heads are alike",
            [](const Self& reported) { return name(reported.question.options.similarity); }),
      field("compare", "what of the heads: kv, query, output",
            [](const Self& reported) { return name(reported.question.options.compared); }),
      field("error", "that qcqa makes small",
            [](const Self& reported) { return name(reported.question.options.error); }),
      field("seed", "of the search", [](const Self& reported) { return reported.question.options.search.seed; }),
      field("merge", "how the heads of a group become one",
            [](const Self& reported) { return name(reported.question.options.merge); }),
      field("calibration_tokens", "of the text; 0: none", unit::tokens,
            [](const Self& reported) { return reported.made.calibration_tokens; }),
      field("kv_heads_of_all_layers", "that are left", unit::count,
            [](const Self& reported) { return present::all_kv_heads(reported.made.result); }),
      field("kv_bytes_per_token_f16", "of K and V",
            [](const Self& reported) {
              return present::f16_kv_bytes(reported.made.before, present::all_kv_heads(reported.made.result));
            }),
      field("folder", "that was written", [](const Self& reported) { return reported.question.folder; }),
      field("front", "of qcqa: the best error for every number of KV heads", &front),
      field("layers", "in their order", &layers));
};

}  // namespace dculab
