#include "present/engine/regroup_report.hpp"

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace dculab::present {
namespace {

[[nodiscard]] std::string groups_text(const engine::HeadGroups& groups) {
  std::string text;
  for (const std::vector<int>& group : groups) {
    if (!text.empty()) text += " |";
    for (const int head : group) text += (text.empty() ? "" : " ") + std::to_string(head);
  }
  return text;
}

[[nodiscard]] Cell similarity_cell(const std::optional<double>& similarity) {
  return similarity ? Cell(number(*similarity), *similarity) : Cell("-", "");
}

[[nodiscard]] Json json_or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

[[nodiscard]] Json layer_json(std::size_t layer, const engine::RegroupedLayer& grouped) {
  return {{"layer", layer},
          {"groups", grouped.groups},
          {"weights", grouped.weights},
          {"key_factors", grouped.factors.k},
          {"value_factors", grouped.factors.v},
          {"similarity_inside", json_or_null(grouped.similarity.inside)},
          {"similarity_between", json_or_null(grouped.similarity.between)},
          {"neighbours_inside", json_or_null(grouped.neighbours.inside)},
          {"neighbours_between", json_or_null(grouped.neighbours.between)}};
}

[[nodiscard]] Table layers_table(const engine::Regrouping& result, const std::string& similarity) {
  Table table;
  table.columns = {"layer", "KV heads that became one", "inside", "between", "neighbours inside", "between"};
  for (std::size_t layer = 0; layer < result.layers.size(); ++layer) {
    const engine::RegroupedLayer& grouped = result.layers[layer];
    table.rows.push_back({std::to_string(layer), groups_text(grouped.groups),
                          similarity_cell(grouped.similarity.inside), similarity_cell(grouped.similarity.between),
                          similarity_cell(grouped.neighbours.inside), similarity_cell(grouped.neighbours.between)});
  }
  table.notes = {"inside, between: mean " + similarity + " over pairs of heads in one group, in two"};
  return table;
}

[[nodiscard]] std::string similarity_text(const engine::RegroupOptions& options) {
  constexpr std::array<const char*, engine::kComparedHeads.size()> kOf{"K and V", "queries", "outputs"};
  return std::string(name(options.similarity)) + " similarity of " + kOf[static_cast<std::size_t>(options.compared)];
}

[[nodiscard]] std::string grouped_by(const engine::RegroupOptions& options) {
  switch (options.method) {
    case engine::GroupingMethod::mean:
      return "neighbouring heads";
    case engine::GroupingMethod::similarity:
      return similarity_text(options);
    case engine::GroupingMethod::key_norm:
      return "norms of keys";
    case engine::GroupingMethod::qcqa:
      return "the error of " + std::string(name(options.error)) + " (seed " + std::to_string(options.search.seed) + ")";
  }
  return "";
}

[[nodiscard]] std::string summary(const study::RegroupQuestion& question, const study::RegroupedFolder& made) {
  const engine::RegroupOptions& options = question.options;
  std::string text = std::to_string(made.before.heads().num_key_value_heads) + " KV heads to " +
                     std::to_string(options.num_key_value_heads) +
                     (options.method == engine::GroupingMethod::qcqa ? " or fewer on average" : "") + ": groups by " +
                     grouped_by(options) + ", " + std::string(name(options.merge)) + " of each group";
  if (made.calibration_tokens > 0)
    text += "; compared on " + std::to_string(made.calibration_tokens) + " tokens of " + question.calibration;
  return text;
}

[[nodiscard]] double kv_bytes(const ModelShape& before, int kv_heads) {
  const int head_dim = before.heads().head_dim;
  return kv_storage(Dtype::f16, 2.0 * kv_heads * head_dim, head_dim).value();
}

[[nodiscard]] int all_kv_heads(const engine::Regrouping& result) {
  std::size_t count = 0;
  for (const engine::RegroupedLayer& layer : result.layers) count += layer.groups.size();
  return static_cast<int>(count);
}

// Of QCQA: the best error for every number of KV heads. The table has those of whole heads on average.
[[nodiscard]] Table front_table(const ModelShape& before, const engine::Regrouping& result) {
  Table table;
  table.title = "What each size of the KV cache loses at least";
  table.columns = {"KV heads of all layers", "on average", "KV bytes a token in F16", "error", ""};
  const int layers = before.num_layers(), taken = all_kv_heads(result);
  for (const engine::LayersPoint& point : result.front) {
    if (point.kv_heads % layers != 0 && point.kv_heads != taken) continue;
    const double average = static_cast<double>(point.kv_heads) / layers;
    table.rows.push_back({std::to_string(point.kv_heads), Cell(number(average), average),
                          Cell(number(kv_bytes(before, point.kv_heads)), kv_bytes(before, point.kv_heads)),
                          Cell(number(point.error / layers), point.error / layers),
                          point.kv_heads == taken ? "taken" : ""});
  }
  table.notes = {"error: the part of K and V of all heads that is lost, the mean of the layers"};
  return table;
}

[[nodiscard]] Json front_json(const ModelShape& before, const engine::Regrouping& result) {
  Json points = Json::array();
  for (const engine::LayersPoint& point : result.front)
    points.push_back({{"kv_heads", point.kv_heads},
                      {"kv_bytes_per_token_f16", kv_bytes(before, point.kv_heads)},
                      {"error", point.error / before.num_layers()}});
  return points;
}

}  // namespace

Report regroup_report(const study::RegroupQuestion& question, const study::RegroupedFolder& made) {
  const engine::RegroupOptions& options = question.options;
  const engine::Regrouping& result = made.result;
  Report report{"dculab/regroup/1", {}, {}, Json::object()};
  report.heading = {summary(question, made), "written to " + question.folder};
  report.tables.push_back(layers_table(result, similarity_text(options)));
  if (!result.front.empty()) report.tables.push_back(front_table(made.before, result));
  report.json = {{"model", made.before.name},
                 {"num_key_value_heads_before", made.before.heads().num_key_value_heads},
                 {"num_key_value_heads", options.num_key_value_heads},
                 {"method", name(options.method)},
                 {"similarity", name(options.similarity)},
                 {"compare", name(options.compared)},
                 {"error", name(options.error)},
                 {"seed", options.search.seed},
                 {"merge", name(options.merge)},
                 {"calibration_tokens", made.calibration_tokens},
                 {"kv_heads_of_all_layers", all_kv_heads(result)},
                 {"kv_bytes_per_token_f16", kv_bytes(made.before, all_kv_heads(result))},
                 {"folder", question.folder}};
  report.json["front"] = front_json(made.before, result);
  report.json["layers"] = Json::array();
  for (std::size_t layer = 0; layer < result.layers.size(); ++layer)
    report.json["layers"].push_back(layer_json(layer, result.layers[layer]));
  return report;
}

}  // namespace dculab::present
