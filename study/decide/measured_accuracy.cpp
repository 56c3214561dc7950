#include "study/decide/measured_accuracy.hpp"

#include <filesystem>

#include "config/accuracy_file.hpp"
#include "core/error.hpp"
#include "engine/checkpoint/model_config.hpp"
#include "study/scenario/locate.hpp"

namespace dculab::study {
namespace {

// Beside the scenario's file, or as it stands.
[[nodiscard]] std::string find_file(const config::Scenario& scenario) {
  const std::filesystem::path beside = std::filesystem::path(scenario.file).parent_path() / scenario.accuracy->file;
  return std::filesystem::exists(beside) ? beside.string() : scenario.accuracy->file;
}

[[nodiscard]] std::string method_text(const config::AccuracyRow& row) {
  return row.method + (row.uptrained_steps > 0 ? ", " + std::to_string(row.uptrained_steps) + " steps" : "");
}

}  // namespace

std::map<int, GroupAccuracy> measured_accuracy(const config::Scenario& scenario) {
  const config::AccuracyChoice& choice = *scenario.accuracy;
  const std::string file = find_file(scenario);
  const int query_heads = engine::read_model_shape(find_model(choice.model)).num_attention_heads;
  const bool lower_is_better = choice.metric == "perplexity";
  std::map<int, GroupAccuracy> best;
  for (const config::AccuracyRow& row : config::read_accuracy_file(file)) {
    const auto figure = row.figure(choice.metric);
    if (!figure) continue;
    if (query_heads % row.num_key_value_heads != 0)
      throw InputError(file, row.line,
                       "num_key_value_heads: " + std::to_string(row.num_key_value_heads) + " does not divide the " +
                           std::to_string(query_heads) + " query heads of " + choice.model);
    const auto [known, is_new] =
        best.try_emplace(query_heads / row.num_key_value_heads, GroupAccuracy{*figure, 0, method_text(row)});
    if (is_new || (lower_is_better ? *figure >= known->second.figure : *figure <= known->second.figure)) continue;
    known->second = {*figure, 0, method_text(row)};
  }
  if (!best.contains(1))
    throw InputError(file, "has no " + choice.metric + " of " + choice.model + " with all of its " +
                               std::to_string(query_heads) + " KV heads; losses are relative to that");
  const double whole = best.at(1).figure;
  for (auto& [group, accuracy] : best)
    accuracy.loss = lower_is_better ? accuracy.figure / whole - 1 : 1 - accuracy.figure / whole;
  return best;
}

}  // namespace dculab::study
