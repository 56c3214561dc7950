#include "config/accuracy_file.hpp"

#include <filesystem>

#include "config/csv_rows.hpp"
#include "config/json_documents.hpp"
#include "config/known_format.hpp"
#include "fields/json_text.hpp"
#include "files/input.hpp"
#include "model/folder/model_config.hpp"

namespace dculab::config {
namespace {

constexpr std::size_t kLargestAccuracyFile = 16 << 20;

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

// "models/my-gqa4" of "pretrained=models/my-gqa4,dtype=float16", and of {"pretrained": "models/my-gqa4"}.
[[nodiscard]] std::string pretrained_of(const Node& document) {
  constexpr std::string_view kKey = "pretrained";
  const Node* config = document.find("config");
  const Node* arguments = config == nullptr ? nullptr : config->find("model_args");
  if (arguments == nullptr) return "";
  if (const Node* path = arguments->find(kKey)) return path->text;
  const std::size_t at = arguments->text.find(std::string(kKey) + "=");
  if (at == std::string::npos) return "";
  const std::size_t begin = at + kKey.size() + 1;
  return arguments->text.substr(begin, arguments->text.find(',', begin) - begin);
}

// Of the model's own folder, or what somebody added to the file.
void read_heads(const Node& document, const std::string& pretrained, ProblemList& problems, AccuracyRow& row) {
  MapReader reader(&document, "", problems);
  reader.optional("num_attention_heads", row.num_attention_heads, between(1, 1 << 16));
  reader.optional("num_key_value_heads", row.num_key_value_heads, between(1, 1 << 16));
  if (row.num_key_value_heads > 0) return;
  if (pretrained.empty() || !std::filesystem::exists(std::filesystem::path(pretrained) / "config.json"))
    return problems.add(document, "num_key_value_heads: '" + pretrained +
                                      "' of config.model_args is no folder here with a config.json that says it; add "
                                      "the key beside results");
  const Heads heads = read_model_shape(pretrained).heads();
  row.num_attention_heads = heads.num_attention_heads;
  row.num_key_value_heads = heads.num_key_value_heads;
}

// What lm-eval wrote of a model: of each task the accuracy without normalisation, "acc,none" or in older versions
// "acc".
void add_lm_eval(const Node& document, ProblemList& problems, std::vector<AccuracyRow>& rows) {
  const std::string pretrained = pretrained_of(document);
  AccuracyRow row;
  row.line = document.place.line;
  row.method = std::filesystem::path(pretrained).filename().string();
  read_heads(document, pretrained, problems, row);
  MapReader reader(&document, "", problems);
  const Node* results = reader.required("results");
  if (results == nullptr || results->kind != NodeKind::map) return;
  for (const Node& task : results->children)
    for (const char* key : {"acc,none", "acc"}) {
      if (task.find(key) == nullptr) continue;
      MapReader figures(&task, "results." + task.key, problems);
      double share = 0;
      figures.required(key, share, between(0, 1));
      rows.push_back(row);
      rows.back().benchmark = task.key;
      rows.back().score = share;
    }
}

// Of several models behind each other.
[[nodiscard]] std::vector<AccuracyRow> read_lm_eval(const std::string& file, const std::string& text) {
  ProblemList problems(file);
  std::vector<AccuracyRow> rows;
  for (const Node& document : json_documents(file, text)) add_lm_eval(document, problems, rows);
  problems.throw_if_any();
  if (rows.empty()) throw InputError(file, "has no task with an accuracy (acc)");
  return rows;
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
  if (recognize(text) == KnownFormat::lm_eval) return read_lm_eval(file, text);
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
