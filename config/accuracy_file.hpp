// Measured accuracy of models with fewer KV heads, one figure or several a row (docs/reference/accuracy-file.md):
//
//   model,num_attention_heads,num_key_value_heads,method,uptrained_steps,perplexity,choice_accuracy,recall_accuracy,
//   benchmark,score,source
//
// In any order, other columns ignored; what a row does not know is empty. Or what `dculab evaluate --format json` wrote
// of a model's copies, or lm-eval of each of them, one document behind the other.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace dculab::config {

struct AccuracyRow {
  int line = 0;
  std::string model;            // empty: whichever is asked about
  int num_attention_heads = 0;  // 0: not stated
  int num_key_value_heads = 0;  // 0: as many as there are query heads
  std::string method;
  int uptrained_steps = 0;
  std::optional<double> perplexity, choice_accuracy, recall_accuracy;
  std::string benchmark;        // whose score it is
  std::optional<double> score;  // more is better

  // By the column's name or the benchmark's; nothing where the cell is empty.
  [[nodiscard]] std::optional<double> figure(const std::string& metric) const;
  // The first that the row has a figure of; empty: none.
  [[nodiscard]] std::string first_metric() const;
  [[nodiscard]] bool is_whole() const;  // no KV heads are merged
};

// Throws InputError with every problem of the file.
[[nodiscard]] std::vector<AccuracyRow> read_accuracy(const std::string& file, const std::string& text);
[[nodiscard]] std::vector<AccuracyRow> read_accuracy_file(const std::string& path);

}  // namespace dculab::config
