#include "present/measure/regroup_report.hpp"

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "present/measure/regroup_fields.hpp"
#include "present/output/field_csv.hpp"

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

[[nodiscard]] std::string similarity_cell(const std::optional<double>& similarity) {
  return similarity ? number(*similarity) : "-";
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
    table.rows.push_back({std::to_string(point.kv_heads), number(average), number(bytes), number(point.error / layers),
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

Report regroup_report(const study::RegroupQuestion& question, const study::RegroupedFolder& made) {
  const engine::Regrouping& result = made.result;
  Report report = report_of("dculab/regroup/1", ReportedRegrouping{question, made});
  report.heading = {summary(question, made), "written to " + question.folder};
  report.tables.push_back(layers_table(result, similarity_text(question.options)));
  if (!result.front.empty()) report.tables.push_back(front_table(made.before, result));
  return report;
}

}  // namespace dculab::present
