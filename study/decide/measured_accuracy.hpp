// What fewer KV heads cost a model in accuracy, by group size, from the file that a scenario names or from the
// published figures that are shipped.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "config/scenario_file.hpp"

namespace dculab::study {

struct GroupAccuracy {
  double figure = 0;   // of the metric
  double loss = 0;     // relative to group size 1; negative: better
  std::string method;  // of the best row: "similarity, 500 steps"
};

struct AccuracyCurve {
  std::string model, metric;
  std::map<int, GroupAccuracy> by_group;
};

// Of scenario.accuracy, the best row of each group size. Throws InputError where the file has no rows of the model,
// none of group size 1, or KV heads that do not divide the model's query heads.
[[nodiscard]] AccuracyCurve measured_accuracy(const config::Scenario& scenario);

// KV heads of a model that lose at most `tolerance`, the most first; `own`, with which the model was trained, are among
// them. A group between two that were measured loses what the larger does; one beyond all is not known.
[[nodiscard]] std::vector<int> tolerated_kv_heads(const AccuracyCurve& curve, int query_heads, int own,
                                                  double tolerance);

// What was published of one model, by KV heads; the file need not say how many it has without merging.
struct PublishedLosses {
  std::string model, metric;
  std::map<int, double> by_kv_heads;  // relative to the model without merged heads
};

// Of the shipped file, each model's first metric.
[[nodiscard]] std::vector<PublishedLosses> published_losses();

}  // namespace dculab::study
