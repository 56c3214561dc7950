// Measured accuracy as CSV.
#include <algorithm>
#include <string>

#include "config/accuracy_file.hpp"
#include "tests/fuzz/targets.hpp"

namespace dculab::fuzz {
namespace {

std::string accuracy_csv(const std::vector<config::AccuracyRow>& rows) {
  std::string text = "model,num_attention_heads,num_key_value_heads,method,uptrained_steps,benchmark,score";
  for (const char* figure : {"perplexity", "choice_accuracy", "recall_accuracy"}) text += std::string(",") + figure;
  for (const config::AccuracyRow& row : rows) {
    const auto heads = [](int count) { return count == 0 ? std::string() : std::to_string(count); };
    text += "\n" + csv_cell(row.model) + "," + heads(row.num_attention_heads) + "," + heads(row.num_key_value_heads) +
            "," + csv_cell(row.method) + "," + std::to_string(row.uptrained_steps) + "," + csv_cell(row.benchmark) +
            "," + (row.score ? csv_cell(*row.score) : "");
    for (const char* metric : {"perplexity", "choice_accuracy", "recall_accuracy"}) {
      const auto figure = row.figure(metric);
      text += "," + (figure ? csv_cell(*figure) : "");
    }
  }
  return text;
}

}  // namespace

void read_accuracy_csv(std::string_view input) {
  const auto rows = config::read_accuracy("fuzz.csv", std::string(input));
  for (const config::AccuracyRow& row : rows) {
    require(row.num_key_value_heads >= 0, "a model has KV heads, or the row does not say how many");
    require(row.score.has_value() != row.benchmark.empty(), "a score is of a benchmark");
    require(row.perplexity.value_or(1) >= 1, "a perplexity is at least 1");
    for (const auto& share : {row.choice_accuracy, row.recall_accuracy})
      require(share.value_or(0) >= 0 && share.value_or(0) <= 1, "an accuracy lies between 0 and 1");
  }
  const auto has_model = [](const config::AccuracyRow& row) { return !row.model.empty(); };
  if (!std::ranges::all_of(rows, has_model)) return;  // what `evaluate` wrote is no table
  const std::string text = accuracy_csv(rows);
  require(accuracy_csv(read_back([&] { return config::read_accuracy("again.csv", text); })) == text,
          "accuracy is read back as written");
}

}  // namespace dculab::fuzz
