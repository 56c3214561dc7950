// Prints the whole grid as CSV, and how often the closed form holds: the figures of docs/reference/cache-replay.md.
#include <algorithm>
#include <cstring>
#include <iostream>
#include <random>

#include "tests/replay/replay_grid.hpp"

int main(int argc, char** argv) {
  using namespace dculab;
  std::vector<ReplayCase> cases = decode_grid(GridSize::full);
  const std::vector<ReplayCase> prefill = prefill_grid(GridSize::full);
  cases.insert(cases.end(), prefill.begin(), prefill.end());
  // A number: so many cases, drawn at random.
  std::mt19937 random(1);
  std::shuffle(cases.begin(), cases.end(), random);
  if (argc > 1) cases.resize(std::min<std::size_t>(cases.size(), std::stoul(argv[1])));
  std::vector<ReplayOutcome> outcomes;
  std::cout << "case;machine;per unit;dram replayed;dram closed;dram error;l2 replayed;l2 closed;l2 hit replayed;l2 "
               "hit closed\n";
  replay_cases(cases, grid_machines(), [&](const ReplayOutcome& outcome) {
    const auto& levels = outcome.comparison.levels;
    const auto& shared = levels[levels.size() - 2];
    std::cout << outcome.what.text() << ';' << outcome.machine << ';' << outcome.comparison.workgroups_per_unit << ';'
              << levels.back().replayed.value() << ';' << levels.back().closed_form.value() << ';'
              << outcome.dram_error() << ';' << shared.replayed.value() << ';' << shared.closed_form.value() << ';'
              << shared.replayed_hit_rate << ';' << shared.closed_hit_rate << '\n';
    outcomes.push_back(outcome);
  });
  const ReplayScore total = score(outcomes);
  std::cerr << cases.size() << " kernels, " << total.count << " outcomes: DRAM bytes within 10 % on "
            << 100 * total.dram_within_10_percent << " %, L2 hit rate within 5 points on "
            << 100 * total.l2_hit_within_5_points << " %\n";
}
