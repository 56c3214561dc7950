#include "config/accuracy_file.hpp"

#include <filesystem>

#include "config/csv_rows.hpp"
#include "fields/json_text.hpp"
#include "files/input.hpp"

namespace dculab::config {
namespace {

constexpr std::size_t kLargestAccuracyFile = 1 << 20;

void read_figure(MapReader& reader, std::string_view key, std::optional<double>& figure, Bounds bounds) {
  double value = 0;
  const Node* node = reader.optional(key);
  if (node == nullptr) return;
  reader.read(*node, value, bounds);
  figure = value;
}

AccuracyRow read_row(const Node& node, ProblemList& problems) {
  AccuracyRow row;
  row.line = node.place.line;
  MapReader reader(&node, "", problems);
  reader.required("model", row.model);
  reader.optional("num_attention_heads", row.num_attention_heads, between(1, 1 << 16));
  reader.optional("num_key_value_heads", row.num_key_value_heads, between(1, 1 << 16));
  reader.required("method", row.method);
  reader.optional("uptrained_steps", row.uptrained_steps, between(0, 1 << 30));
  read_figure(reader, "perplexity", row.perplexity, at_least(1));
  read_figure(reader, "choice_accuracy", row.choice_accuracy, between(0, 1));
  read_figure(reader, "recall_accuracy", row.recall_accuracy, between(0, 1));
  reader.optional("benchmark", row.benchmark);
  read_figure(reader, "score", row.score, between(0, 1e9));
  if (row.score.has_value() == row.benchmark.empty())
    reader.complain(node, "benchmark: says whose score it is; give both, or neither");
  return row;
}

// A row of `evaluate` has several figures: its perplexity, and a share of right answers for each file of questions.
// They are of a copy of whatever model is asked about.
void add_evaluation(const Node& node, ProblemList& problems, std::vector<AccuracyRow>& rows) {
  MapReader reader(&node, "rows[]", problems);
  AccuracyRow row;
  row.line = node.place.line;
  reader.required("model", row.method);
  reader.required("num_attention_heads", row.num_attention_heads, between(1, 1 << 16));
  reader.required("num_key_value_heads", row.num_key_value_heads, between(1, 1 << 16));
  if (const Node* text = node.find("text"); text != nullptr && text->kind == NodeKind::map) {
    MapReader figures(text, "rows[].text", problems);
    double perplexity = 0;
    figures.required("perplexity", perplexity, at_least(1));
    rows.push_back(row);
    rows.back().perplexity = perplexity;
  }
  const Node* choices = node.find("choices");
  if (choices == nullptr || choices->kind != NodeKind::list) return;
  for (const Node& each : choices->children) {
    MapReader figures(&each, "rows[].choices[]", problems);
    double share = 0;
    figures.required("file", row.benchmark);
    figures.required("accuracy", share, between(0, 1));
    rows.push_back(row);
    rows.back().benchmark = std::filesystem::path(row.benchmark).stem().string();
    rows.back().score = share;
  }
}

[[nodiscard]] std::vector<AccuracyRow> read_evaluation(const std::string& file, const std::string& text) {
  const Node document = parse_json(file, 1, text);
  ProblemList problems(file);
  MapReader reader(&document, "", problems);
  std::string schema;
  reader.required("schema", schema);
  std::vector<AccuracyRow> rows;
  if (schema != "dculab/evaluate/1")
    reader.complain(document, "schema: must be dculab/evaluate/1, what `dculab evaluate --format json` writes");
  else if (const Node* evaluated = reader.required("rows"))
    for (const Node& each : evaluated->children) add_evaluation(each, problems, rows);
  problems.throw_if_any();
  return rows;
}

}  // namespace

std::optional<double> AccuracyRow::figure(const std::string& metric) const {
  if (metric == "perplexity") return perplexity;
  if (metric == "choice_accuracy") return choice_accuracy;
  if (metric == "recall_accuracy") return recall_accuracy;
  return metric == benchmark ? score : std::nullopt;
}

std::string AccuracyRow::first_metric() const {
  for (const char* metric : {"perplexity", "choice_accuracy", "recall_accuracy"})
    if (figure(metric)) return metric;
  return benchmark;
}

bool AccuracyRow::is_whole() const { return num_key_value_heads == 0 || num_key_value_heads == num_attention_heads; }

std::vector<AccuracyRow> read_accuracy(const std::string& file, const std::string& text) {
  if (text.starts_with('{')) return read_evaluation(file, text);
  ProblemList problems(file);
  std::vector<AccuracyRow> rows;
  for (const Node& node : csv_rows(file, text, problems)) rows.push_back(read_row(node, problems));
  problems.throw_if_any();
  return rows;
}

std::vector<AccuracyRow> read_accuracy_file(const std::string& path) {
  return read_accuracy(path, files::read_text(path, kLargestAccuracyFile));
}

}  // namespace dculab::config
