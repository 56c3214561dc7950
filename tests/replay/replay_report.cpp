// Prints the whole grid as CSV, and how often the closed form holds: the figures of docs/reference/cache-replay.md.
//
// Usage: replay_report [N]            attention; N: number of cases, drawn at random
//        replay_report kernels [N]    all other kernels
#include <algorithm>
#include <iostream>
#include <random>
#include <string>

#include "tests/replay/kernel_grid.hpp"
#include "tests/replay/replay_grid.hpp"

namespace {

using namespace dculab;

// `wanted` of them at random; all where it is empty.
template <typename Case>
std::vector<Case> drawn(std::vector<Case> cases, const std::string& wanted) {
  std::mt19937 random(1);
  std::shuffle(cases.begin(), cases.end(), random);
  if (!wanted.empty()) cases.resize(std::min<std::size_t>(cases.size(), std::stoul(wanted)));
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

void report_attention(const std::string& wanted) {
  std::vector<ReplayCase> all = decode_grid(GridSize::full);
  const std::vector<ReplayCase> prefill = prefill_grid(GridSize::full);
  all.insert(all.end(), prefill.begin(), prefill.end());
  const std::vector<ReplayCase> cases = drawn(all, wanted);
  std::vector<ReplayOutcome> outcomes;
  std::cout << "case;machine;workgroups per unit;DRAM replayed;DRAM closed form;DRAM error;L2 replayed;L2 closed "
               "form;L2 hit replayed;L2 hit closed form\n";
  replay_cases(cases, grid_machines(), [&](const ReplayOutcome& outcome) {
    print_row(outcome);
    outcomes.push_back(outcome);
  });
  if (outcomes.empty()) return;
  const ReplayScore total = score(outcomes);
  std::cerr << cases.size() << " kernels, " << outcomes.size() << " outcomes: DRAM bytes within 10 % on "
            << 100 * total.dram_within_10_percent << " %, L2 hit rate within 5 points on "
            << 100 * total.l2_hit_within_5_points << " %\n";
}

void report_kernels(const std::string& wanted) {
  const std::vector<KernelCase> cases = drawn(kernel_grid(GridSize::full), wanted);
  double outcomes = 0, dram = 0, l2 = 0, hit = 0;
  replay_kernels(cases, kernel_machines(), [&](const KernelOutcome& outcome) {
    std::cout << outcome.text();
    outcomes += 1;
    dram += outcome.dram_holds() ? 1 : 0;
    l2 += outcome.l2_holds() ? 1 : 0;
    hit += outcome.l2_hit_holds() ? 1 : 0;
  });
  std::cerr << cases.size() << " kernels, " << outcomes << " outcomes: DRAM bytes within 10 % on "
            << 100 * dram / outcomes << " %, L2 bytes within 10 % on " << 100 * l2 / outcomes
            << " %, L2 hit rate within 5 points on " << 100 * hit / outcomes << " %\n";
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const bool kernels = !words.empty() && words.front() == "kernels";
  const std::size_t number = kernels ? 1 : 0;
  const std::string wanted = words.size() > number ? words[number] : "";
  kernels ? report_kernels(wanted) : report_attention(wanted);
}
