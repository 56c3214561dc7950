// What a model's config.json says, and what follows from it.
#pragma once

#include <vector>

#include "model/model_shape.hpp"
#include "present/values/machine_figures.hpp"

namespace dculab::present {

// Sizes, then what each kind of layer is made of ("window 4096: sliding_window" where there are several), then weights
// and KV cache.
[[nodiscard]] std::vector<MachineFigure> model_values(const ModelShape& model);

}  // namespace dculab::present
