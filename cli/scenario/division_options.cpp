#include "cli/scenario/division_options.hpp"

#include <CLI/CLI.hpp>

#include "cli/scenario/checks.hpp"
#include "engine/exchange/rank_group.hpp"

namespace dculab::cli {

void add_division_options(CLI::App& command, engine::Division& division) {
  command
      .add_option("--tensor-parallel-size", division.tensor_parallel_size,
                  "CPU: processes that share every layer, and the threads")
      ->check(between(1, engine::kMostRanks));
  command.add_flag_callback(
      "--enable-expert-parallel", [&division] { division.experts = engine::ExpertDivision::by_expert; },
      "With --tensor-parallel-size: each process has some routed experts whole");
}

}  // namespace dculab::cli
