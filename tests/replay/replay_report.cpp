// Prints the whole grid as CSV, and how often the closed form holds: the figures of docs/reference/cache-replay.md.
//
// Usage: replay_report [N]      N: so many cases, drawn at random
#include <algorithm>
#include <iostream>
#include <random>
#include <string>

#include "tests/replay/replay_grid.hpp"

namespace {

using namespace dculab;

std::vector<ReplayCase> chosen_cases(int argc, char** argv) {
  std::vector<ReplayCase> cases = decode_grid(GridSize::full);
  const std::vector<ReplayCase> prefill = prefill_grid(GridSize::full);
  cases.insert(cases.end(), prefill.begin(), prefill.end());
  std::mt19937 random(1);
  std::shuffle(cases.begin(), cases.end(), random);
  if (argc > 1) cases.resize(std::min<std::size_t>(cases.size(), std::stoul(argv[1])));
  return cases;
}

void print_row(const ReplayOutcome& outcome) {
  const auto& levels = outcome.comparison.levels;
  const sim::ComparedLevel& dram = levels.back();
  const sim::ComparedLevel& shared = levels[levels.size() - 2];
  std::cout << outcome.what.text() << ';' << outcome.machine << ';' << outcome.comparison.workgroups_per_unit << ';'
            << dram.replayed.value() << ';' << dram.closed_form.value() << ';' << outcome.dram_error() << ';'
            << shared.replayed.value() << ';' << shared.closed_form.value() << ';' << shared.replayed_hit_rate << ';'
            << shared.closed_hit_rate << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<ReplayCase> cases = chosen_cases(argc, argv);
  std::vector<ReplayOutcome> outcomes;
  std::cout << "case;machine;workgroups per unit;DRAM replayed;DRAM closed form;DRAM error;L2 replayed;L2 closed "
               "form;L2 hit replayed;L2 hit closed form\n";
  replay_cases(cases, grid_machines(), [&](const ReplayOutcome& outcome) {
    print_row(outcome);
    outcomes.push_back(outcome);
  });
  if (outcomes.empty()) return 0;
  const ReplayScore total = score(outcomes);
  std::cerr << cases.size() << " kernels, " << outcomes.size() << " outcomes: DRAM bytes within 10 % on "
            << 100 * total.dram_within_10_percent << " %, L2 hit rate within 5 points on "
            << 100 * total.l2_hit_within_5_points << " %\n";
}
