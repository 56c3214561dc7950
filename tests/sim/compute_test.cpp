// Instructions, conversions and wave quantisation against numbers worked out by hand.
#include "sim/compute/compute_time.hpp"

#include <algorithm>
#include <cmath>

#include "lower/flash_attention/kernels.hpp"
#include "lower/gemm/kernels.hpp"
#include "model/plan_step.hpp"
#include "sim/compute/peak.hpp"
#include "tests/sim/lowered.hpp"
#include "tests/sim/machines.hpp"
#include "tests/sim/models.hpp"
#include "tests/support/catch.hpp"

namespace dculab::sim::test {
namespace {

// y[m, n] = x[m, k] w[n, k]^T in F16, by a library in tiles of 128 x 256, with int4 weights of 64 x 256.
Op matmul(int m, int n, int k, Dtype weights = Dtype::f16) {
  Op op;
  op.kind = OpKind::matmul;
  op.m = m;
  op.n = n;
  op.k = k;
  op.weight_format.dtype = weights;
  op.flops = FlopCount(2.0 * m * n * k);
  op.add({OperandRole::weight, storage(weights, static_cast<double>(n) * k), storage(weights, k)});
  op.add({OperandRole::activation, storage(Dtype::f16, static_cast<double>(m) * k), storage(Dtype::f16, k)});
  op.add({OperandRole::output, storage(Dtype::f16, static_cast<double>(m) * n), storage(Dtype::f16, n)});
  return op;
}

Machine ideal_gpu() {
  Machine machine = a100_like();
  machine.stack.reached.matmul_compute = 1;
  machine.stack.reached.conversion_compute = 1;
  machine.stack.kernels.matmul = {&lower::gemm::kCublas};
  return machine;
}

TEST_CASE("values are multiplied in the next wider format that the machine has") {
  CHECK(multiply_format(mi50_like(), Dtype::f16).dtype == Dtype::f16);
  CHECK(multiply_format(mi50_like(), Dtype::bf16).dtype == Dtype::f32);
  CHECK(multiply_format(mi50_like(), Dtype::fp8_e4m3).dtype == Dtype::f16);
  CHECK(multiply_format(cpu_like(), Dtype::f16).dtype == Dtype::f32);
}

TEST_CASE("conversions cost more where the machine has no instruction for them") {
  CHECK(conversion_instructions(mi50_like(), Dtype::f16, Dtype::f16) == 0);
  CHECK(conversion_instructions(cpu_like(), Dtype::bf16, Dtype::f32) == 1);
  CHECK(conversion_instructions(mi50_like(), Dtype::fp8_e4m3, Dtype::f16) == 4);
  Machine knows_fp8 = mi50_like();
  knows_fp8.peaks[Dtype::fp8_e4m3] = {kTflops, {}};
  CHECK(conversion_instructions(knows_fp8, Dtype::fp8_e4m3, Dtype::f16) == 1);
}

TEST_CASE("rounded activations are multiplied as integers, and unpacking, rounding and scaling are paid for") {
  Machine machine = mi50_like();
  machine.stack.reached.matmul_compute = 1;
  machine.stack.reached.conversion_compute = 1;
  Parallelism whole;
  whole.active_units = machine.compute_units;
  Op op = matmul(16, 256, 1024, Dtype::int4);
  op.weight_format.group_size = 128;
  op.activations = ActivationMode::int8;
  const double lanes = 13.4e12 / 2;
  const double beside = 0.5 * 256 * 1024 + 4.0 * 16 * 1024 + 3.0 * 16 * 256 * 1024 / 128;
  CHECK(compute_time(machine, op, whole).busy.value() == Approx(2.0 * 16 * 256 * 1024 / 53.6e12 + beside / lanes));
  CHECK(compute_time(machine, op, whole).floor.value() == Approx(2.0 * 16 * 256 * 1024 / 53.6e12));
  op.weight_format.dtype = Dtype::int8;
  const double unpacking = 0.5 * 256 * 1024;
  CHECK(compute_time(machine, op, whole).busy.value() ==
        Approx(2.0 * 16 * 256 * 1024 / 53.6e12 + (beside - unpacking) / lanes));
  // No integer products: widened as ever.
  machine.peaks.erase(Dtype::int8);
  Op exact = op;
  exact.activations = ActivationMode::exact;
  CHECK(compute_time(machine, op, whole).busy.value() == Approx(compute_time(machine, exact, whole).busy.value()));
}

TEST_CASE("activations rounded to BF16 are multiplied at the BF16 rate, whatever the others are stored in") {
  Machine machine = cpu_like();
  machine.peaks[Dtype::bf16] = {2.0 * machine.peaks.at(Dtype::f32).vector, {}};
  machine.stack.reached.matmul_compute = 1;
  machine.stack.reached.conversion_compute = 1;
  Parallelism whole;
  whole.active_units = machine.compute_units;
  Op op = matmul(512, 256, 1024, Dtype::bf16);
  op.activation_dtype = Dtype::f32;
  const Seconds exact = compute_time(machine, op, whole).floor;
  op.activations = ActivationMode::bf16;
  const ComputeTime rounded = compute_time(machine, op, whole);
  CHECK(rounded.floor.value() == Approx(exact.value() / 2));
  CHECK(rounded.busy.value() == Approx(rounded.floor.value()));  // and nothing is widened
}

TEST_CASE("a kernel that was measured takes its own rate, conversions included") {
  constexpr FlopsPerSecond kGflops{1e9};
  Machine machine = cpu_like();
  machine.stack.reached.matmul_compute = 0.8;
  machine.stack.reached.conversion_compute = 0.01;  // of no account here
  machine.matmul_rates[{Dtype::int4, ActivationMode::exact}] = {{1, 40 * kGflops}, {8, 128 * kGflops}};
  Parallelism whole;
  whole.active_units = machine.compute_units;
  const auto busy = [&](int rows, Dtype weights) {
    return compute_time(machine, matmul(rows, 512, 1024, weights), whole).busy.value();
  };
  const double weights = 512.0 * 1024;
  const double one = 2 / 40e9, eight = 16 / 128e9;  // s per weight
  CHECK(busy(1, Dtype::int4) == Approx(weights * one / 0.8));
  CHECK(busy(8, Dtype::int4) == Approx(weights * eight / 0.8));
  CHECK(busy(3, Dtype::int4) == Approx(weights * (one + 2 / 7.0 * (eight - one)) / 0.8));
  CHECK(busy(64, Dtype::int4) == Approx(weights * 8 * eight / 0.8));
  CHECK(busy(3, Dtype::int3) == Approx(busy(3, Dtype::int4)));  // unpacked alike
  Parallelism half = whole;
  half.active_units = machine.compute_units / 2.0;
  CHECK(compute_time(machine, matmul(1, 512, 1024, Dtype::int4), half).busy.value() ==
        Approx(2 * busy(1, Dtype::int4)));

  // Another format, another way to take activations: the law of a machine that knows no kernel.
  Op rounded = matmul(8, 512, 1024, Dtype::int4);
  rounded.weight_format.group_size = 128;
  rounded.activations = ActivationMode::int8;
  Machine unmeasured = machine;
  unmeasured.matmul_rates.clear();
  for (const Op& op : {matmul(8, 512, 1024, Dtype::f16), rounded})
    CHECK(compute_time(machine, op, whole).busy == compute_time(unmeasured, op, whole).busy);

  // No price is below the floor, whatever a file says of a kernel.
  machine.stack.reached.matmul_compute = 1;
  machine.matmul_rates[{Dtype::f16, ActivationMode::exact}] = {{1, 1000 * kGflops}};
  const ComputeTime fast = compute_time(machine, matmul(8, 512, 1024), whole);
  CHECK(fast.busy == fast.floor);
  CHECK(fast.floor.value() == Approx(16 * weights / 340e9));
}

TEST_CASE("one row takes the vector path, many the matrix cores, seventeen pay for thirty-two") {
  const Machine machine = ideal_gpu();
  Parallelism whole;
  whole.active_units = machine.compute_units;
  const auto seconds = [&](int m) { return compute_time(machine, matmul(m, 4096, 4096), whole).busy.value(); };
  CHECK(seconds(1) == Approx(2.0 * 4096 * 4096 / 78e12));
  CHECK(seconds(16) == Approx(16 * 2.0 * 4096 * 4096 / 312e12));
  CHECK(seconds(17) == Approx(32 * 2.0 * 4096 * 4096 / 312e12));
  CHECK(seconds(32) == Approx(seconds(17)));
}

TEST_CASE("int4 weights are unpacked once per row tile, beside matrix cores or before vector ones") {
  Machine machine = ideal_gpu();
  Parallelism whole;
  whole.active_units = machine.compute_units;
  const double unpack = 3.0 * 4096 * 4096 / (19.5e12 / 2);
  const double multiply = 2.0 * 4096 * 4096 / 78e12;
  machine.peaks[Dtype::f16].matrix.reset();
  CHECK(compute_time(machine, matmul(1, 4096, 4096, Dtype::int4), whole).busy.value() == Approx(multiply + unpack));
  CHECK(compute_time(machine, matmul(128, 4096, 4096, Dtype::int4), whole).busy.value() ==
        Approx(128 * multiply + 2 * unpack));
  CHECK(compute_time(ideal_gpu(), matmul(16, 4096, 4096, Dtype::int4), whole).busy.value() == Approx(unpack));
}

TEST_CASE("wave quantisation: the busiest unit decides") {
  Machine machine = ideal_gpu();
  machine.compute_units = 100;
  // 10 x 20 = 200 tiles, two for each unit; one tile more makes three.
  const Parallelism even = parallelism(machine, matmul(1280, 5120, 512));
  CHECK(even.active_units * std::ceil(even.workgroups / 100) == Approx(even.workgroups));
  Op op = matmul(128 * 67, 256 * 9, 512);  // 603 tiles
  const Parallelism odd = parallelism(machine, op);
  REQUIRE(odd.workgroups == 603);
  CHECK(odd.active_units == Approx(603.0 / 7));
  CHECK(compute_time(machine, op, odd).busy.value() == Approx(op.flops.value() / 312e12 * 7 * 100 / 603));
}

TEST_CASE("a tile whose sums would fill a unit's registers is computed by two of them") {
  Machine machine = a100_like();  // 256 KiB of registers a unit
  const Op op = matmul(1024, 4096, 4096);
  CHECK(tile_workgroups(machine, op) == 8 * 32);
  machine.compute_capability = "9.0";
  machine.stack.kernels.matmul = {&lower::gemm::kCublas};  // tiles of 256 x 256
  CHECK(tile_workgroups(machine, op) == 2 * 4 * 16);
  CHECK(parallelism(machine, op).workgroups == 2 * 4 * 16);
}

TEST_CASE("NVIDIA's decode attention computes 64 rows for however few heads share the KV, AMD's 16") {
  Parallelism whole;
  const auto seconds = [&whole](Machine machine, int heads) {
    machine.peaks[Dtype::f16].vector = FlopsPerSecond(1e9);
    machine.stack.reached.attention_compute = 1;
    machine.stack.kernels.matmul = {&lower::gemm::kCublas};
    machine.stack.kernels.attention_decode = {&lower::flash_attention::kFlashAttention2};
    whole.active_units = machine.compute_units;
    ModelShape model = llama_3_8b();
    model.kinds[0].gqa().heads.num_attention_heads = heads * model.kinds[0].gqa().heads.num_key_value_heads;
    const Batch batch = uniform_batch(Phase::decode, 1, 4096);
    const StepPlan plan = plan_step(model, {}, batch);
    return compute_time(machine, *std::ranges::find(plan.ops, OpKind::attention_decode, &Op::kind), whole, plan)
        .busy.value();
  };
  const double one_row = 2 * 2.0 * 8 * 128 * 4096 / 312e12;
  Machine amd = a100_like();
  amd.compute_capability.clear();
  CHECK(seconds(a100_like(), 4) == Approx(64 * one_row));
  CHECK(seconds(a100_like(), 32) == Approx(64 * one_row));
  CHECK(seconds(amd, 4) == Approx(16 * one_row));
}

TEST_CASE("a matrix-vector product is split until the machine is full, but not below 256 of k") {
  const Machine machine = ideal_gpu();
  const Parallelism wide = parallelism(machine, matmul(1, 108 * 128, 4096));
  CHECK(wide.active_units == machine.compute_units);
  const Parallelism tiny = parallelism(machine, matmul(1, 64, 512));
  CHECK(tiny.workgroups == 2);
}

TEST_CASE("tiles are split along k into whole parts, of which those that fill more units or places are tried") {
  Machine machine = ideal_gpu();
  machine.compute_units = 100;
  machine.stack.kernels.matmul.clear();  // our own, in tiles of 128 x 128, as on AMD's devices
  machine.compute_capability.clear();
  const auto splits = [&](const Op& op) {
    std::vector<double> tried;
    const lower::Launch launch = lowered(machine, op);
    if (!can_be_split(machine, launch, parallelism(machine, op))) return tried;
    for_each_split(machine, parallelism(machine, op), 2, launch.most_parts,
                   [&](double parts, const Parallelism& split) {
                     CHECK(split.workgroups == parts * tile_workgroups(machine, op));
                     tried.push_back(parts);
                   });
    return tried;
  };
  const Op op = matmul(1280, 512, 1024);  // 40 tiles: 80 units of 100; three parts 120 of 200, four 160 of 200
  CHECK(parallelism(machine, op).workgroups == 40);
  CHECK(splits(op) == std::vector<double>{2});
  CHECK(splits(matmul(1280, 512, 1280)) == std::vector<double>{2, 5});  // five parts: 200 of 200
  CHECK(splits(matmul(1280, 640, 1280)) == std::vector<double>{2, 4});  // 50 tiles: two parts 100 units, four 200
  CHECK(splits(matmul(1280, 512, 511)).empty());
  CHECK(splits(matmul(1, 2560, 1280)).empty());
  machine.kernel_target = "gfx906";  // our kernels take up to 8 rows without tiles
  CHECK(splits(matmul(8, 2560, 1280)).empty());
  CHECK_FALSE(splits(matmul(9, 2560, 1280)).empty());
  machine.kernel_target.clear();
  const Parallelism three = split_along_k(machine, parallelism(machine, op), 3);
  CHECK(three.workgroups == 120);
  CHECK(three.active_units == 60);
}

TEST_CASE("a bias does not multiply a product's tiles") {
  const Machine machine = ideal_gpu();
  const Op plain = matmul(1280, 512, 1024);
  Op biased = plain;
  biased.add({OperandRole::weight, Bytes(1024), Bytes(1024)});
  CHECK(tile_workgroups(machine, biased) == tile_workgroups(machine, plain));
}

TEST_CASE(
    "the sums of a split product are written to the last cache and read from it, or DRAM if it does not hold them") {
  Machine machine = ideal_gpu();
  const Op op = matmul(1280, 512, 1024);
  const double sums = 3 * 1280 * 512 * 4;
  const auto from = [&](std::size_t level, double efficiency) {
    return Approx(2 * sums / (machine.memory[level].bandwidth.value() * efficiency));
  };
  CHECK(split_k_reduction_time(machine, op, 1) == Seconds());
  CHECK(split_k_reduction_time(machine, op, 3).value() == from(1, machine.sustained.cache_bandwidth));
  machine.memory[1].size = Bytes(sums - 1);
  CHECK(split_k_reduction_time(machine, op, 3).value() == from(2, machine.sustained.dram_bandwidth));
}

TEST_CASE("a ragged decode batch is held up by its longest walk") {
  EngineOptions options;
  options.attention_split.partition_tokens = 0;
  Batch batch;
  for (int index = 0; index < 8; ++index)
    batch.sequences.push_back({index, Phase::decode, index == 0 ? 7999 : 99, 1, true});
  const StepPlan plan = plan_step(llama_3_8b(), options, batch);
  for (const Op& op : plan.ops) {
    if (op.kind != OpKind::attention_decode) continue;
    // 8 heads * (8000 + 7 * 100) tokens, the longest 8000.
    CHECK(lowered(mi50_like(), op, plan).grid.walked_tokens == Approx(8 * 8700));
    CHECK(parallelism(mi50_like(), op, plan).active_units == Approx(8 * 8700 / 8000.0));
  }
}

TEST_CASE("on a CPU rows go to the threads in equal shares") {
  EngineOptions options;
  for (const auto& [rows, active] : {std::pair{1, 1.0}, {2, 2.0}, {3, 1.5}, {8, 2.0}}) {
    const StepPlan plan = plan_step(tiny_llama(), options, uniform_batch(Phase::decode, rows, 10));
    CHECK(parallelism(cpu_like(), plan.ops[1]).active_units == Approx(active));
  }
}

}  // namespace
}  // namespace dculab::sim::test
