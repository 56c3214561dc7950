// What products by tiles wait for: slabs of k one after the other, SIMDs without a wave, neighbours that drift apart.
#include "lower/aiter/kernels.hpp"
#include "lower/gemm/kernels.hpp"
#include "sim/cost/way_price.hpp"
#include "tests/sim/lowered.hpp"
#include "tests/sim/machines.hpp"
#include "tests/sim/products.hpp"
#include "tests/support/catch.hpp"

namespace dculab::sim::test {
namespace {

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
    return reuse_of(machine, op, parallelism(machine, op), kFootprint)[0].together;
  };
  CHECK_THAT(burst(2048) / burst(1024), WithinRel(2.0, 1e-9));
  CHECK_THAT(burst(1 << 20) / burst(1 << 18), WithinRel(1.0, 1e-9));
}

TEST_CASE("parts that add to y in memory need no second kernel, and pass through the last cache alone") {
  Machine machine = vega20();
  const Op op = product(8, 4096, 4096);
  lower::Launch launch = lowered(machine, op);
  launch.parts = 1e4;  // whose sums no cache holds
  const Parallelism whole = sim::parallelism(machine, launch);
  const auto priced = [&] {
    const Lowered lowered_op{machine, op, launch, kFootprint, 2, 1};
    return price_way(lowered_op, {split_along_k(machine, whole, launch.parts), launch.parts});
  };
  const OpPrice apart = priced();
  launch.adds_in_place = true;
  const OpPrice in_place = priced();
  CHECK(in_place.kernels == apart.kernels - 1);
  CHECK(in_place.split_k_reduction > Seconds());
  CHECK(in_place.split_k_reduction < apart.split_k_reduction);
}

TEST_CASE("values without registers come back from the first cache that holds them until then") {
  const Machine machine = vega20();
  const Op op = product(8, 4096, 4096);
  lower::Launch launch = lowered(machine, op);
  const Parallelism parallel = sim::parallelism(machine, launch);
  const auto spilled = [&](Bytes between) {
    launch.spills = {};
    const LevelBytes without = level_bytes(machine, op, launch, parallel, kFootprint, CacheStart::in_step);
    launch.spills = {Bytes(1e9), between};
    LevelBytes with = level_bytes(machine, op, launch, parallel, kFootprint, CacheStart::in_step);
    for (std::size_t level = 0; level < machine.memory.size(); ++level)
      with.arriving[level] = with.arriving[level] + -1.0 * without.arriving[level];
    return with.arriving;
  };
  const auto few = spilled(Bytes(16)), more = spilled(Bytes(8e3)), most = spilled(Bytes(16e6));
  CHECK_THAT(few[0] / Bytes(1e9), WithinRel(1.0, 1e-6));
  CHECK(few[1] < Bytes(1e7));
  CHECK(more[1] > Bytes(0.9e9));
  CHECK(more[2] < Bytes(1e8));
  CHECK(most[2] > Bytes(0.9e9));
}

}  // namespace dculab::sim::test
