#include "present/measure/evaluation_report.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "config/unit_text.hpp"
#include "core/activation_mode.hpp"
#include "core/kv/table.hpp"
#include "present/measure/evaluation_fields.hpp"
#include "present/output/field_csv.hpp"

namespace dculab::present {
namespace {

using engine::ChoiceEvaluation;
using study::EvaluationRow;
using study::EvaluationTasks;

[[nodiscard]] std::string stem(const std::string& file) { return std::filesystem::path(file).stem().string(); }

[[nodiscard]] double share(int right, const ChoiceEvaluation& of) { return static_cast<double>(right) / of.num_items; }

[[nodiscard]] double decode_rate(const EvaluationTasks& tasks, Seconds step) {
  return tasks.decode.batch / step.value();
}

// Which columns say something: those of unchanged options are left out.
struct Columns {
  bool activations = false, retention = false, sequence = false, loaded = false, text = false, reference = false,
       experts = false, decode = false, speculation = false;
};

[[nodiscard]] Columns columns_of(const EvaluationTasks& tasks, const std::vector<EvaluationRow>& rows) {
  const auto any = [&rows](auto holds) { return std::ranges::any_of(rows, holds); };
  return {.activations = any([](const EvaluationRow& row) { return row.activations != ActivationMode::exact; }),
          .retention = any([](const EvaluationRow& row) { return row.retention.policy != RetentionPolicy::all; }),
          .sequence = any([](const EvaluationRow& row) {
            return differs_in_decodes(row.retention.policy) || quantizes_together(row.kv_cache_dtype);
          }),
          .loaded = any([](const EvaluationRow& row) { return kv_policy(row.retention.policy).has_budget; }),
          .text = !tasks.text_file.empty(),
          .reference = !tasks.text_file.empty() && !tasks.reference.empty(),
          .experts = any([](const EvaluationRow& row) { return !row.experts.is_empty(); }),
          .decode = tasks.decode.steps > 0,
          .speculation = any([](const EvaluationRow& row) { return row.speculation.has_value(); })};
}

[[nodiscard]] std::vector<std::string> column_names(const EvaluationTasks& tasks, const Columns& columns) {
  std::vector<std::string> names{"model", "KV cache"};
  if (columns.activations) names.emplace_back("activations");
  if (columns.retention) names.emplace_back("KV kept");
  if (columns.text) names.emplace_back("perplexity");
  for (const std::string& file : tasks.question_files) names.push_back(stem(file));
  if (columns.reference) names.insert(names.end(), {"KL", "top-1"});
  names.insert(names.end(), {"weights", "KV/token"});
  if (columns.sequence) names.push_back("KV of " + std::to_string(tasks.decode.context));
  if (columns.loaded) names.emplace_back("loaded");
  if (columns.experts) std::ranges::copy(expert_columns(), std::back_inserter(names));
  if (columns.decode) names.emplace_back("tokens/s");
  if (columns.speculation) {
    names.insert(names.end(), {"alone", "drafted", "identical"});
    std::ranges::copy(draft_columns(), std::back_inserter(names));
  }
  return names;
}

[[nodiscard]] Row speculation_cells(const engine::SpeculationCheck& check) {
  Row cells{number(check.plain_rate()) + " tokens/s", number(check.drafted_rate()) + " tokens/s",
            std::to_string(check.num_identical) + " of " + std::to_string(check.num_texts)};
  std::ranges::move(draft_cells(check_drafts(check)), std::back_inserter(cells));
  return cells;
}

[[nodiscard]] Row cells_of(const EvaluationTasks& tasks, const Columns& columns, const EvaluationRow& row) {
  Row cells{row.model, std::string(name(row.kv_cache_dtype))};
  if (columns.activations) cells.emplace_back(std::string(name(row.activations)));
  if (columns.retention) cells.emplace_back(retention_text(row.retention));
  if (columns.text) cells.emplace_back(number(row.text->loss.perplexity(), 5));
  for (const ChoiceEvaluation& each : row.choices) cells.emplace_back(percent(share(each.right, each)));
  if (columns.reference) {
    const engine::Agreement& agreement = *row.text->agreement;
    cells.emplace_back(number(agreement.mean_kl()));
    cells.emplace_back(percent(agreement.top1(), 4));
  }
  cells.emplace_back(config::short_text(row.weight_bytes));
  cells.emplace_back(config::short_text(row.kv_bytes_per_token));
  if (columns.sequence) cells.emplace_back(config::short_text(row.kv_bytes_per_sequence));
  if (columns.loaded) cells.emplace_back(config::short_text(row.kv_bytes_loaded));
  if (columns.experts) std::ranges::move(expert_cells(row.experts), std::back_inserter(cells));
  if (columns.decode) {
    const double rate = decode_rate(tasks, *row.decode_step);
    cells.emplace_back(number(rate));
  }
  if (columns.speculation) std::ranges::move(speculation_cells(*row.speculation), std::back_inserter(cells));
  return cells;
}

[[nodiscard]] bool goes_beyond_context(const EvaluationTasks& tasks) {
  return !tasks.text_file.empty() && tasks.window > tasks.context;
}

// What becomes of a text that is longer than the models were made for.
[[nodiscard]] Table position_table(const std::vector<EvaluationRow>& rows) {
  Table table;
  table.columns = {"perplexity", "KV cache", "KV kept"};
  for (const engine::PositionLoss& each : rows.front().text->by_position)
    table.columns.push_back(std::to_string(each.begin) + " to " + std::to_string(each.end - 1));
  for (const EvaluationRow& row : rows) {
    Row cells{row.model, std::string(name(row.kv_cache_dtype)), retention_text(row.retention)};
    for (const engine::PositionLoss& each : row.text->by_position)
      cells.push_back(each.loss.num_tokens == 0 ? "-" : number(each.loss.perplexity(), 4));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

[[nodiscard]] std::vector<std::string> heading(const EvaluationTasks& tasks, const Columns& columns) {
  std::vector<std::string> lines;
  if (!tasks.text_file.empty())
    lines.push_back(std::filesystem::path(tasks.text_file).filename().string() + " in windows of " +
                    std::to_string(tasks.window) + " tokens, " +
                    (tasks.mode == engine::ScoringMode::streamed ? "token by token" : "in chunks"));
  if (goes_beyond_context(tasks))
    lines.push_back("positions from " + std::to_string(tasks.context) +
                    " on lie beyond what the models were made for; only with sinks they are never reached");
  if (!tasks.reference.empty() && !tasks.text_file.empty())
    lines.push_back("KL and top-1 against " + tasks.reference + ", its cache in the widest format");
  if (columns.sequence)
    lines.push_back("KV of " + std::to_string(tasks.decode.context) + ": of a sequence of so many tokens, all layers");
  if (columns.experts) lines.push_back(expert_heading());
  if (tasks.decode.steps > 0)
    lines.push_back("tokens/s: " + std::to_string(tasks.decode.batch) + " x decode at " +
                    std::to_string(tasks.decode.context) + " tokens of context, median of " +
                    std::to_string(tasks.decode.steps) + " steps or more");
  if (columns.speculation)
    lines.push_back("alone, drafted: " + std::to_string(tasks.max_tokens) + " tokens after each of up to " +
                    std::to_string(tasks.num_prompts) +
                    " prompts, all at once, at temperature 0; identical: texts that drafting did not change");
  return lines;
}

}  // namespace

DraftFigures check_drafts(const engine::SpeculationCheck& check) {
  return {.counts = check.drafts, .drafting = check.drafting, .verifying = check.verifying};
}

Report evaluation_report(const study::EvaluationAnswer& answer) {
  const EvaluationTasks& tasks = answer.tasks;
  const std::vector<EvaluationRow>& rows = answer.rows;
  const Columns columns = columns_of(tasks, rows);
  Report report = report_of("dculab/evaluate/1", ReportedEvaluations{tasks, rows}, heading(tasks, columns));
  Table table;
  table.columns = column_names(tasks, columns);
  for (const EvaluationRow& row : rows) table.rows.push_back(cells_of(tasks, columns, row));
  report.tables.push_back(std::move(table));
  if (goes_beyond_context(tasks)) report.tables.push_back(position_table(rows));
  return report;
}

}  // namespace dculab::present
