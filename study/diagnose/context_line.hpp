// TPOT over context, as measured and as predicted: what is constant and what each token of the context costs.
#pragma once

#include <optional>
#include <span>

#include "study/diagnose/diagnosis.hpp"

namespace dculab::study {

// Of the batch that was measured at most contexts; nothing where there are no two.
[[nodiscard]] std::optional<ContextLine> context_line(std::span<const StepFacts> steps);

}  // namespace dculab::study
