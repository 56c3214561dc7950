// The grid of steps that `dculab bench` measures.
#pragma once

#include <string>
#include <vector>

#include "core/kv/retention.hpp"
#include "engine/measure/step_bench.hpp"

namespace dculab::cli {

struct GridChoices {
  std::string model;
  std::vector<std::string> phases{"prefill", "decode"};
  std::vector<int> batches{1};
  std::vector<int> contexts{512};
  std::vector<int> kv_heads{};
  std::vector<int> block_sizes{16};
  std::vector<std::string> kv_cache_dtypes{"f16"};
  std::vector<std::string> retentions{"all"};
  KvRetention retention_sizes{};  // of all policies
  std::string activations = "exact";
  engine::Division division{};
};

// All combinations of the axes, as points of a grid. `model` has the weights.
[[nodiscard]] std::vector<engine::BenchPoint> make_grid(const GridChoices& choices, const ModelShape& model,
                                                        engine::DeviceKind device);

}  // namespace dculab::cli
