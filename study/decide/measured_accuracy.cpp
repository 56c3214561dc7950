#include "study/decide/measured_accuracy.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

#include "config/accuracy_file.hpp"
#include "core/error.hpp"
#include "model/folder/model_config.hpp"
#include "study/scenario/locate.hpp"

namespace dculab::study {
namespace {

using config::AccuracyRow;

[[nodiscard]] std::string published_file() {
  for (const std::filesystem::path& folder : data_folders())
    if (const auto file = folder / "scenarios/accuracy/published.csv"; std::filesystem::exists(file))
      return file.string();
  throw InputError("scenarios/accuracy/published.csv", "is not among the data of this program; give accuracy.file");
}

// Beside the scenario's file, or as it stands.
[[nodiscard]] std::string find_file(const config::Scenario& scenario) {
  if (scenario.accuracy->file.empty()) return published_file();
  const std::filesystem::path beside = std::filesystem::path(scenario.file).parent_path() / scenario.accuracy->file;
  return std::filesystem::exists(beside) ? beside.string() : scenario.accuracy->file;
}

[[nodiscard]] std::string method_text(const AccuracyRow& row) {
  return row.method + (row.uptrained_steps > 0 ? ", " + std::to_string(row.uptrained_steps) + " steps" : "");
}

[[nodiscard]] bool lower_is_better(const std::string& metric) { return metric == "perplexity"; }

[[nodiscard]] double loss(const std::string& metric, double figure, double whole) {
  return lower_is_better(metric) ? figure / whole - 1 : 1 - figure / whole;
}

[[nodiscard]] std::vector<AccuracyRow> rows_of(const std::string& file, const std::string& model) {
  std::set<std::string> others;
  std::vector<AccuracyRow> rows;
  for (AccuracyRow& row : config::read_accuracy_file(file)) {
    others.insert(row.model);
    if (row.model == model || row.model.empty()) rows.push_back(std::move(row));
  }
  if (!rows.empty()) return rows;
  std::string known;
  for (const std::string& other : others) known += (known.empty() ? "" : ", ") + other;
  throw InputError(file, "has no accuracy of '" + model + "'; it has that of " + (known.empty() ? "none" : known));
}

[[nodiscard]] int query_heads_of(const std::string& file, const std::vector<AccuracyRow>& rows,
                                 const std::string& model) {
  for (const AccuracyRow& row : rows)
    if (row.num_attention_heads > 0) return row.num_attention_heads;
  if (const auto folder = try_find_model(model)) return read_model_shape(*folder).heads().num_attention_heads;
  throw InputError(file, "does not say how many query heads " + model +
                             " has, hence not which group sizes were measured; give num_attention_heads");
}

[[nodiscard]] int group_of(const std::string& file, const AccuracyRow& row, int query_heads, const std::string& model) {
  if (row.num_key_value_heads == 0) return 1;
  if (query_heads % row.num_key_value_heads != 0)
    throw InputError(file, row.line,
                     "num_key_value_heads: " + std::to_string(row.num_key_value_heads) + " does not divide the " +
                         std::to_string(query_heads) + " query heads of " + model);
  return query_heads / row.num_key_value_heads;
}

[[nodiscard]] std::string first_metric(const std::vector<AccuracyRow>& rows) {
  for (const AccuracyRow& row : rows)
    if (std::string metric = row.first_metric(); !metric.empty()) return metric;
  return "perplexity";
}

}  // namespace

AccuracyCurve measured_accuracy(const config::Scenario& scenario) {
  const config::AccuracyChoice& choice = *scenario.accuracy;
  const std::string file = find_file(scenario);
  const std::vector<AccuracyRow> rows = rows_of(file, choice.model);
  const int query_heads = query_heads_of(file, rows, choice.model);
  AccuracyCurve curve{choice.model, choice.metric.empty() ? first_metric(rows) : choice.metric, {}};
  const bool less = lower_is_better(curve.metric);
  for (const AccuracyRow& row : rows) {
    const auto figure = row.figure(curve.metric);
    if (!figure) continue;
    const auto [known, is_new] = curve.by_group.try_emplace(group_of(file, row, query_heads, choice.model),
                                                            GroupAccuracy{*figure, 0, method_text(row)});
    if (is_new || (less ? *figure >= known->second.figure : *figure <= known->second.figure)) continue;
    known->second = {*figure, 0, method_text(row)};
  }
  if (!curve.by_group.contains(1))
    throw InputError(file, "has no " + curve.metric + " of " + choice.model + " with all of its " +
                               std::to_string(query_heads) + " KV heads; losses are relative to that");
  const double whole = curve.by_group.at(1).figure;
  for (auto& [group, accuracy] : curve.by_group) accuracy.loss = loss(curve.metric, accuracy.figure, whole);
  return curve;
}

std::vector<int> tolerated_kv_heads(const AccuracyCurve& curve, int query_heads, int own, double tolerance) {
  std::vector<int> tolerated;
  for (int heads = query_heads; heads >= 1; --heads) {
    if (query_heads % heads != 0) continue;
    const auto at_least = curve.by_group.lower_bound(query_heads / heads);
    if (heads == own || (at_least != curve.by_group.end() && at_least->second.loss <= tolerance))
      tolerated.push_back(heads);
  }
  return tolerated;
}

std::vector<PublishedLosses> published_losses() {
  std::vector<PublishedLosses> published;
  std::map<std::string, double> whole;
  for (const AccuracyRow& row : config::read_accuracy_file(published_file())) {
    if (std::ranges::find(published, row.model, &PublishedLosses::model) == published.end())
      published.push_back({row.model, row.first_metric(), {}});
    PublishedLosses& losses = *std::ranges::find(published, row.model, &PublishedLosses::model);
    const auto figure = row.figure(losses.metric);
    if (!figure) continue;
    if (row.is_whole())
      whole[row.model] = *figure;
    else
      losses.by_kv_heads[row.num_key_value_heads] = *figure;
  }
  for (PublishedLosses& losses : published)
    for (auto& [heads, figure] : losses.by_kv_heads) figure = loss(losses.metric, figure, whole.at(losses.model));
  return published;
}

}  // namespace dculab::study
