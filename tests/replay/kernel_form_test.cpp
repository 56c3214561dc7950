// The closed forms of products, norms and the other kernels against the replay of what they really touch.
#include <algorithm>
#include <cmath>
#include <string>

#include "tests/replay/kernel_grid.hpp"
#include "tests/support/catch.hpp"

namespace dculab {
namespace {

// One case in kEveryKernel, another one of each step's ops: all ops, formats and numbers of rows come up.
constexpr std::size_t kEveryKernel = 4, kOpsOfStep = 28;

std::vector<KernelCase> thinned_kernels(const std::vector<KernelCase>& cases) {
  std::vector<KernelCase> some;
  for (std::size_t i = 0; i < cases.size(); ++i)
    if ((i + i / kOpsOfStep) % kEveryKernel == 0) some.push_back(cases[i]);
  return some;
}

void check_kernels(const std::vector<sim::Machine>& machines) {
  std::string failing;
  double outcomes = 0, dram = 0, l2 = 0, hit = 0;
  replay_kernels(thinned_kernels(kernel_grid(GridSize::quick)), machines, [&](const KernelOutcome& outcome) {
    outcomes += 1;
    dram += outcome.dram_holds() ? 1 : 0;
    l2 += outcome.l2_holds() ? 1 : 0;
    hit += outcome.l2_hit_holds() ? 1 : 0;
    if (!outcome.dram_holds() || !outcome.l2_holds() || !outcome.l2_hit_holds()) failing += outcome.text();
  });
  INFO(outcomes << " outcomes, those that fail:\n" << failing);
  REQUIRE(outcomes > 40 * static_cast<double>(machines.size()));
  CHECK(dram >= 0.95 * outcomes);
  CHECK(l2 >= 0.95 * outcomes);
  CHECK(hit >= 0.95 * outcomes);
}

}  // namespace

TEST_CASE("products, norms and the rest: closed-form bytes and hit rates are those of the replay on 19 of 20 cases",
          "[once]") {
  std::vector<sim::Machine> machines = kernel_machines();
  std::erase_if(machines, [](const sim::Machine& machine) { return machine.name != "mi50"; });
  check_kernels(machines);
}

TEST_CASE("products, norms and the rest: the same on more machines", "[.long]") { check_kernels(kernel_machines()); }

TEST_CASE("the kernels that are run are of every op, format and number of rows") {
  const std::vector<KernelCase> all = kernel_grid(GridSize::quick), some = thinned_kernels(all);
  for (const KernelCase& each : all) {
    INFO(each.text());
    const auto has = [&](auto&& same) { return std::any_of(some.begin(), some.end(), same); };
    CHECK(has([&](const KernelCase& other) { return other.op == each.op; }));
    CHECK(has([&](const KernelCase& other) { return other.options.weights == each.options.weights; }));
    CHECK(has([&](const KernelCase& other) { return other.batch == each.batch; }));
  }
}

}  // namespace dculab
