// 90 % intervals of what a variant costs, and of its change against a baseline.
#pragma once

#include <optional>
#include <string>

#include "cli/study/variant_cost.hpp"

namespace dculab::cli {

struct FigureInterval {
  double low = 0;
  double high = 0;
};

// Precondition of both: what they are given fits, and has the metric.
[[nodiscard]] FigureInterval interval_of(const VariantCost& cost, const std::string& metric);

// Of variant / baseline - 1, by the differences of what each prior does to the two. Nothing where they are on different
// machines, or where one was calibrated, whose intervals do not say what is common to both.
[[nodiscard]] std::optional<FigureInterval> interval_of_change(const VariantCost& baseline, const VariantCost& variant,
                                                               const std::string& metric);

}  // namespace dculab::cli
