// The lower bound that spares most splits along k their price, against pricing all of them.
#include "sim/cost/split_price.hpp"

#include "lower/gemm/kernels.hpp"
#include "sim/compute/split_k.hpp"
#include "sim/cost/smooth_max.hpp"
#include "tests/sim/lowered.hpp"
#include "tests/sim/machines.hpp"
#include "tests/support/catch.hpp"

namespace dculab::sim::test {
namespace {

constexpr Bytes kFootprint{1e10};

// y[m, n] = x[m, k] w[n, k]^T in F16.
Op product(double m, double n, double k) {
  Op op;
  op.kind = OpKind::matmul;
  op.m = static_cast<std::int64_t>(m);
  op.n = static_cast<std::int64_t>(n);
  op.k = static_cast<std::int64_t>(k);
  op.flops = FlopCount(2 * m * n * k);
  op.add({OperandRole::weight, Bytes(2 * n * k), Bytes(2 * k)});
  op.add({OperandRole::activation, Bytes(2 * m * k), Bytes(2 * k)});
  op.add({OperandRole::output, Bytes(2 * m * n), Bytes(2 * n)});
  return op;
}

// The first of the cheapest of all that are tried.
OpPrice cheapest_of_all(const Machine& machine, const Op& op) {
  const lower::Launch launch = lowered(machine, op);
  const Lowered work{machine, op, launch, kFootprint, norm_of_overlap(machine.stack.reached.overlap)};
  const Parallelism whole = parallelism(machine, op);
  OpPrice cheapest = price_way(work, {whole});
  if (!can_be_split(machine, launch, whole)) return cheapest;
  for_each_split(machine, whole, 2, launch.most_parts, [&](double parts, const Parallelism& split) {
    const OpPrice price = price_way(work, {split, parts});
    if (price.seconds < cheapest.seconds) cheapest = price;
  });
  return cheapest;
}

void check_products(const Machine& machine) {
  for (const double rows : {2, 16, 129, 200, 700})
    for (const double columns : {1024, 4096, 6144, 14336, 28672, 128256})
      for (const double depth : {512, 4096, 14336, 28672}) {
        CAPTURE(machine.name, machine.stack.reached.overlap, rows, columns, depth);
        const Op op = product(rows, columns, depth);
        const OpPrice chosen = price_op(machine, op, kFootprint), cheapest = cheapest_of_all(machine, op);
        CHECK(chosen.seconds == cheapest.seconds);
        CHECK(chosen.parallel.workgroups == cheapest.parallel.workgroups);
      }
}

}  // namespace

TEST_CASE("a product is split into the parts that are cheapest of all that are tried") {
  for (Machine machine : {mi50_like(), a100_like()}) {
    machine.stack.kernels.matmul = {&lower::gemm::kCublas};
    for (const double overlap : {0.3, 0.8, 0.9, 1.0}) {
      machine.stack.reached.overlap = overlap;
      check_products(machine);
    }
  }
}

}  // namespace dculab::sim::test
