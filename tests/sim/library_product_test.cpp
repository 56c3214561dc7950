// What products by tiles wait for: slabs of k one after the other, SIMDs without a wave, neighbours that drift apart.
#include "lower/aiter/kernels.hpp"
#include "lower/gemm/kernels.hpp"
#include "tests/sim/lowered.hpp"
#include "tests/sim/machines.hpp"
#include "tests/support/catch.hpp"

namespace dculab::sim::test {
namespace {

constexpr Bytes kFootprint{1e10};

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

Machine vega20() {
  Machine machine = mi50_like();
  machine.vendor = lower::Vendor::amd;
  machine.isa = "gfx906";
  machine.stack.kernels.matmul = {&lower::gemm::kRocblas};
  return machine;
}

}  // namespace

TEST_CASE("a slab waits for memory, is transferred and read from the scratchpad step by step") {
  const Machine machine = vega20();
  const lower::Launch launch = lowered(machine, product(16, 960, 4096));  // 60 tiles of 16 x 16
  const Parallelism parallel = sim::parallelism(machine, launch);
  const Seconds latency(300e-9);
  const Seconds fetching = latency + launch.slab / (6600 * kGBs / 60), scratchpad = 33 * Seconds(75e-9) / 2;
  CHECK_THAT(latency_time(machine, launch, parallel, Bytes(1e6), latency) / (fetching + scratchpad),
             WithinRel(128.0, 1e-9));
  lower::Launch deeper = launch;
  deeper.slabs_ahead = 2;
  CHECK_THAT(latency_time(machine, deeper, parallel, Bytes(1e6), latency) / (fetching / 2 + scratchpad),
             WithinRel(128.0, 1e-9));
}

TEST_CASE("few rows of a library without splits along k take as long as their slabs, whatever the columns") {
  const Machine machine = vega20();
  const Seconds one = price_op(machine, product(16, 16, 65536), kFootprint).seconds;
  CHECK(one > 2048 * (machine.memory.back().latency + machine.memory.front().latency));
  CHECK(price_op(machine, product(16, 960, 65536), kFootprint).seconds < 1.5 * one);
  CHECK(price_op(machine, product(16, 16, 131072), kFootprint).seconds > 1.9 * one);
}

TEST_CASE("a unit with fewer waves than SIMDs multiplies with as many as it has waves") {
  const Machine machine = vega20();
  const Op few = product(16, 960, 4096), many = product(64, 3840, 4096);  // 60 tiles, of 16 x 16 and of 64 x 64
  CHECK(parallelism(machine, few).waves_per_workgroup == 1);
  CHECK(parallelism(machine, few).busy_units() == 15);
  CHECK(parallelism(machine, many).busy_units() == 60);
  const Seconds one_simd = compute_time(machine, few, parallelism(machine, few)).busy;
  const Seconds all = compute_time(machine, many, parallelism(machine, many)).busy;
  CHECK_THAT(one_simd / all, WithinRel(4.0 / 16, 1e-9));
  const Parallelism split = split_along_k(machine, parallelism(machine, few), 2);
  CHECK(split.busy_units() == 30);
  CHECK(parallelism(cpu_like(), few).busy_simds == 1);
}

TEST_CASE("workgroups of a long product drift apart by no more than the slabs that are under way") {
  const Machine machine = vega20();
  const auto burst = [&](double k) {
    const Op op = product(4096, 4096, k);
    return reuse_of(machine, op, parallelism(machine, op), kFootprint)[0].burst;
  };
  CHECK_THAT(burst(2048) / burst(1024), WithinRel(2.0, 1e-9));
  CHECK_THAT(burst(1 << 20) / burst(1 << 18), WithinRel(1.0, 1e-9));
}

}  // namespace dculab::sim::test
