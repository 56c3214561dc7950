// How models compare as the batch of a step grows: which is the faster one, and from which batch it no longer is.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/units.hpp"

namespace dculab::study {

// A model, and what a step of it takes.
struct ComparedModel {
  std::string name;
  std::int64_t max_sequences = 0;  // that fit in memory
  std::function<Seconds(int batch)> step_time;
};

// From `batch` on `faster` takes less time than `slower`, which took less before.
struct OrderChange {
  std::string faster, slower;
  int batch = 0;
  int last = 0;  // the largest of the batches with that order, or the largest that both have room for
};

// Where two of the models change places between the first and the last of `batches` (ascending), as far as both have
// room: the smallest batch at which the one is faster, found by bisection between two that the list has. Models whose
// times differ by less than kPriceResolution are in no order. In order of the batch.
[[nodiscard]] std::vector<OrderChange> order_changes(std::span<const ComparedModel> models,
                                                     std::span<const int> batches);

}  // namespace dculab::study
