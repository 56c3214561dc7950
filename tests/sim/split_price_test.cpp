// The lower bound that spares most splits along k their price, against pricing all of them.
#include "sim/cost/split_price.hpp"

#include "lower/gemm/kernels.hpp"
#include "sim/compute/split_k.hpp"
#include "sim/cost/smooth_max.hpp"
#include "tests/sim/lowered.hpp"
#include "tests/sim/machines.hpp"
#include "tests/sim/products.hpp"
#include "tests/support/catch.hpp"

namespace dculab::sim::test {
namespace {

// The first of the cheapest of those that keep more units busy than fewer parts do, and of the most that run at once.
OpPrice cheapest_of_all(const Machine& machine, const Op& op) {
  const lower::Launch launch = lowered(machine, op);
  const Lowered work{machine, op, launch, kFootprint, norm_of_overlap(machine.stack.reached.matmul_overlap), 1};
  const Parallelism whole = parallelism(machine, op);
  OpPrice cheapest = price_way(work, {whole});
  if (!can_be_split(machine, launch, whole)) return cheapest;
  const double most_at_once = std::floor(places(machine, whole) / whole.workgroups);
  double busiest = whole.active_units;
  for (double parts = 2; parts <= launch.most_parts; ++parts) {
    const Parallelism split = split_along_k(machine, whole, parts);
    if (split.active_units <= busiest && parts != most_at_once) continue;
    busiest = std::max(busiest, split.active_units);
    const OpPrice price = price_way(work, {split, parts});
    if (price.seconds < cheapest.seconds) cheapest = price;
  }
  return cheapest;
}

void check_products(const Machine& machine, Dtype weights) {
  for (const double rows : {2, 16, 129, 200, 700})
    for (const double columns : {1024, 4096, 6144, 14336, 28672, 128256})
      for (const double depth : {512, 4096, 14336, 28672}) {
        CAPTURE(machine.name, machine.stack.reached.matmul_overlap, rows, columns, depth);
        const Op op = product(rows, columns, depth, weights);
        const OpPrice chosen = price_op(machine, op, kFootprint), cheapest = cheapest_of_all(machine, op);
        CHECK(chosen.seconds == cheapest.seconds);
        CHECK(chosen.parallel.workgroups == cheapest.parallel.workgroups);
      }
}

}  // namespace

TEST_CASE("a product is split into the parts that are cheapest of all that are tried") {
  Machine hopper = a100_like(), alone = mi50_like();
  hopper.compute_capability = "9.0";
  alone.memory.back().bandwidth_per_unit = 40 * kGBs;
  for (Machine machine : {mi50_like(), a100_like(), hopper, alone}) {
    for (const lower::MatmulKernel* kernel : {&lower::gemm::kCublas, &lower::gemm::kHipblaslt}) {
      machine.stack.kernels.matmul = {kernel};
      for (const double overlap : {0.3, 0.8, 0.9, 1.0}) {
        machine.stack.reached.matmul_overlap = overlap;
        for (const Dtype weights : {Dtype::f16, Dtype::int4}) check_products(machine, weights);
      }
    }
  }
}

}  // namespace dculab::sim::test
