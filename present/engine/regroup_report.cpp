#include "present/engine/regroup_report.hpp"

#include <optional>
#include <vector>

#include "present/engine/regroup_fields.hpp"

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

[[nodiscard]] std::string similarity_text(const RegroupChoices& choices) {
  const std::string of = choices.compared == "kv" ? "K and V" : choices.compared == "query" ? "queries" : "outputs";
  return choices.similarity + " similarity of " + of;
}

[[nodiscard]] std::string summary(const RegroupChoices& choices, const ModelShape& before, std::size_t tokens) {
  std::string grouped = "neighbouring heads";
  if (choices.method == "similarity") grouped = similarity_text(choices);
  if (choices.method == "key-norm") grouped = "norms of keys";
  if (choices.method == "qcqa")
    grouped = "the error of " + choices.error + " (seed " + std::to_string(choices.seed) + ")";
  std::string text = std::to_string(before.heads().num_key_value_heads) + " KV heads to " +
                     std::to_string(choices.kv_heads) + (choices.method == "qcqa" ? " or fewer on average" : "") +
                     ": groups by " + grouped + ", " + choices.merge + " of each group";
  if (tokens > 0) text += "; compared on " + std::to_string(tokens) + " tokens of " + choices.calibration;
  return text;
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
    const double bytes = f16_kv_bytes(before, point.kv_heads).value();
    table.rows.push_back({std::to_string(point.kv_heads), Cell(number(average), average), Cell(number(bytes), bytes),
                          Cell(number(point.error / layers), point.error / layers),
                          point.kv_heads == taken ? "taken" : ""});
  }
  table.notes = {"error: the part of K and V of all heads that is lost, the mean of the layers"};
  return table;
}

}  // namespace

Bytes f16_kv_bytes(const ModelShape& before, int kv_heads) {
  const int head_dim = before.heads().head_dim;
  return kv_storage(Dtype::f16, 2.0 * kv_heads * head_dim, head_dim);
}

int all_kv_heads(const engine::Regrouping& result) {
  std::size_t count = 0;
  for (const engine::RegroupedLayer& layer : result.layers) count += layer.groups.size();
  return static_cast<int>(count);
}

Report regroup_report(const RegroupChoices& choices, const ModelShape& before, const engine::Regrouping& result,
                      std::size_t tokens) {
  Report report{"dculab/regroup/1", {}, {}, json_of(ToldRegrouping{choices, before, result, tokens})};
  report.heading = {summary(choices, before, tokens), "written to " + choices.folder};
  report.tables.push_back(layers_table(result, similarity_text(choices)));
  if (!result.front.empty()) report.tables.push_back(front_table(before, result));
  return report;
}

}  // namespace dculab::present
