#include "present/study/model_comparison.hpp"

#include <algorithm>

#include "config/unit_text.hpp"
#include "present/study/step_decision_fields.hpp"
#include "study/scenario/axis_title.hpp"

namespace dculab::present {
namespace {

// "context 4096, KV dtype fp8_e4m3"
[[nodiscard]] std::string text_of(const std::vector<config::Override>& others) {
  std::string text;
  for (const auto& [key, value] : others) text += (text.empty() ? "" : ", ") + study::axis_title(key) + " " + value;
  return text;
}

// "16", or "16, 64" where these cannot be told apart.
[[nodiscard]] std::string blocks_text(const study::SweptModel& model) {
  std::string text;
  for (const int block : model.tied_blocks) text += (text.empty() ? "" : ", ") + std::to_string(block);
  return text;
}

[[nodiscard]] Row row_of(const study::SweptModel& model) {
  Row row{model.compared.name, config::short_text(model.kv_bytes_per_token), std::to_string(model.kv_cache_tokens),
          blocks_text(model)};
  for (const std::optional<Seconds>& step : model.steps) row.push_back(step ? config::short_text(*step) : "no room");
  row.emplace_back(std::to_string(model.compared.max_sequences));
  row.emplace_back(number(model.tokens_per_second));
  return row;
}

// "from batch 4 on, mqa is faster than gqa8: by 21 % at batch 26 (8 to 40 %)"
[[nodiscard]] std::string change_text(const study::ModelChange& change) {
  const study::OrderChange& order = change.order;
  const study::Cost& lead = change.lead;
  const std::string text = "from batch " + std::to_string(order.batch) + " on, " + order.faster + " is faster than " +
                           order.slower + ": by " + percent(lead.value, 2) + " at batch " + std::to_string(order.last) +
                           " (90 % interval " + percent(lead.low, 2) + " to " + percent(lead.high, 2);
  return text + (lead.low <= 0 ? ": they cannot be told apart)" : ")");
}

[[nodiscard]] std::vector<std::string> order_notes(const study::ModelComparison& comparison,
                                                   const std::vector<int>& batches, const std::string& machine) {
  std::vector<std::string> notes;
  for (const study::ModelChange& change : comparison.changes)
    notes.push_back("→ " + machine + ": " + change_text(change));
  if (!comparison.changes.empty() && comparison.has_short_model)
    notes.emplace_back("Batches count as far as both models have room.");
  if (comparison.changes.empty() && batches.size() > 1)
    notes.push_back("→ " + machine + ": no two of the models change places between batch " +
                    std::to_string(batches.front()) + " and " + std::to_string(batches.back()));
  return notes;
}

[[nodiscard]] Table table_of(const study::ModelComparison& comparison, const std::vector<int>& batches,
                             const std::string& machine) {
  Table table;
  const std::string others = text_of(comparison.others);
  table.title = "Models on " + machine + (others.empty() ? "" : ", " + others);
  const bool chose_block = std::ranges::any_of(comparison.models, &study::SweptModel::chose_block);
  table.columns = {"model", "KV / token", "tokens that fit", chose_block ? "best blocks" : "block"};
  for (const int batch : batches) table.columns.push_back("step, batch " + std::to_string(batch));
  table.columns.insert(table.columns.end(), {"most sequences", "tokens/s with those"});
  for (const study::SweptModel& model : comparison.models) table.rows.push_back(row_of(model));
  table.notes = order_notes(comparison, batches, machine);
  return table;
}

}  // namespace

std::vector<ReportedModels> reported_models(const study::SweptModels& models) {
  std::vector<ReportedModels> reported;
  for (const study::ModelComparison& each : models.comparisons)
    reported.push_back({text_of(each.others), each, models.batches});
  return reported;
}

void add_model_comparison(const study::SweptModels& models, const std::string& machine, Report& report) {
  for (const study::ModelComparison& each : models.comparisons)
    report.tables.push_back(table_of(each, models.batches, machine));
}

}  // namespace dculab::present
