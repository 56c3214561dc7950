// Measured accuracy of a model with fewer KV heads, one way of merging them per row:
//
//   model,num_key_value_heads,method,uptrained_steps,perplexity,choice_accuracy,recall_accuracy,command
//
// Other columns are ignored; cells of accuracies may be empty. Written by whoever measures: docs/reference/papers.md.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace dculab::config {

struct AccuracyRow {
  int line = 0;
  std::string model;
  int num_key_value_heads = 0;
  std::string method;
  int uptrained_steps = 0;
  std::optional<double> perplexity, choice_accuracy, recall_accuracy;

  // By the column's name; nothing where the cell is empty.
  [[nodiscard]] std::optional<double> figure(const std::string& metric) const;
};

// Throws InputError with every problem of the file.
[[nodiscard]] std::vector<AccuracyRow> read_accuracy(const std::string& file, const std::string& text);
[[nodiscard]] std::vector<AccuracyRow> read_accuracy_file(const std::string& path);

}  // namespace dculab::config
