// The axes of `dculab bench`, and the grid of steps that they span.
#pragma once

#include <string>
#include <vector>

#include "core/kv/retention.hpp"
#include "engine/parallel/division.hpp"
#include "study/measure/step_grid.hpp"

namespace CLI {
class App;
}

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

void add_grid_options(CLI::App& command, GridChoices& grid);

// All combinations of the axes. Throws InputError.
[[nodiscard]] std::vector<study::GridStep> grid_steps(const GridChoices& choices);

}  // namespace dculab::cli
