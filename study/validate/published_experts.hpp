// Published kernels of mixtures of experts: the products of the experts that tokens chose, as programs time them.
#pragma once

#include "config/points_file.hpp"
#include "sim/study/measured_run.hpp"

namespace dculab::study {

// The sorting of rows, both products, the activation between them and the weighted sum, for m tokens: what vLLM's
// fused_experts launches for experts that are chosen already. Throws InputError
// where the point does not say how many experts and sizes there are.
[[nodiscard]] sim::MeasuredRun fused_moe_run(const config::PublishedPoint& point);

}  // namespace dculab::study
