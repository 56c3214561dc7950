// What merging KV heads costs a model in accuracy, by group size, from the file that a scenario names.
#pragma once

#include <map>
#include <string>

#include "config/scenario_file.hpp"

namespace dculab::study {

struct GroupAccuracy {
  double figure = 0;   // of the metric
  double loss = 0;     // relative to group size 1; negative: better
  std::string method;  // of the best row: "similarity, 500 steps"
};

// The best row of each group size. Throws InputError where the file has no model of group size 1, or KV heads that do
// not divide the model's query heads.
[[nodiscard]] std::map<int, GroupAccuracy> measured_accuracy(const config::Scenario& scenario);

}  // namespace dculab::study
